package credentials

import (
	"errors"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/fakeapi"
)

type bench struct {
	*fakeapi.Server
	*Reconciler
	events *events.FakeRecorder
}

func newBench(t *testing.T, c *api.Cluster, existing ...client.Object) *bench {
	t.Helper()
	s := fakeapi.New(t, append(existing, c)...)
	recorder := events.NewFakeRecorder(20)
	return &bench{s, &Reconciler{Client: s, Live: s.Live, Events: recorder, Password: func() string { return "generated" }}, recorder}
}

func (b *bench) reconcile(t *testing.T) {
	t.Helper()
	if _, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "c1"}}); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) data(t *testing.T, name string) map[string]string {
	t.Helper()
	s := &corev1.Secret{}
	if err := b.Server.Live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, s); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for key, value := range s.Data {
		out[key] = string(value)
	}
	return out
}

func (b *bench) condition(t *testing.T) *metav1.Condition {
	t.Helper()
	c := &api.Cluster{}
	if err := b.Server.Live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "c1"}, c); err != nil {
		t.Fatal(err)
	}
	return meta.FindStatusCondition(c.Status.Conditions, api.ConditionCredentialsReady)
}

func stored(name string, data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string][]byte{}}
	for key, value := range data {
		s.Data[key] = []byte(value)
	}
	return s
}

func TestSecretsAreMadeOnceAndThenNothingIsWritten(t *testing.T) {
	b := newBench(t, aCluster())
	b.reconcile(t)
	want := map[string]string{"username": api.AccountReplication, "password": "generated"}
	if got := b.data(t, "c1-replication"); !maps.Equal(got, want) {
		t.Errorf("c1-replication holds %v", got)
	}
	if c := b.condition(t); c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
	b.Taken()
	b.Password = func() string { t.Error("a password is generated again"); return "" }
	for range 5 {
		b.reconcile(t)
	}
	if writes := b.Taken(); len(writes) > 0 {
		t.Errorf("writes in steady state: %v", writes)
	}
}

func TestOnlyMissingKeysAreFilled(t *testing.T) {
	b := newBench(t, aCluster(),
		stored("c1-replication", map[string]string{"username": "x", "note": "keep"}),
		stored("c1-root", map[string]string{"password": "", "username": "root"}),
		stored("c1-control", map[string]string{"password": "p"}))
	b.reconcile(t)
	for name, want := range map[string]map[string]string{
		"c1-replication": {"username": "x", "password": "generated", "note": "keep"},
		"c1-root":        {"username": "root", "password": "generated"},
		"c1-control":     {"username": api.AccountControl, "password": "p"},
	} {
		if got := b.data(t, name); !maps.Equal(got, want) {
			t.Errorf("%s holds %v, want %v", name, got, want)
		}
	}
}

func TestEstablishedClusterNeverGetsANewPassword(t *testing.T) {
	c := aCluster()
	c.Status.CurrentPrimary, c.Status.CurrentPrimaryGeneration = "c1-1", 1
	b := newBench(t, c, stored("c1-app", map[string]string{"username": "app", "password": "p"}),
		stored("c1-replication", map[string]string{"username": "x", "password": ""}),
		stored("c1-control", map[string]string{"username": "x", "password": "p"}))
	b.Password = func() string { t.Error("a password is generated"); return "" }
	b.reconcile(t)
	b.reconcile(t)
	if got := b.condition(t); got.Status != metav1.ConditionFalse || got.Reason != api.ReasonSecretMissing ||
		!strings.Contains(got.Message, "c1-root") || !strings.Contains(got.Message, "c1-replication") {
		t.Errorf("condition %+v", got)
	}
	if n := len(b.events.Events); n != 1 {
		t.Errorf("%d events for one state of things", n)
	}
	if err := b.Create(t.Context(), stored("c1-root", map[string]string{"password": "p"})); err != nil {
		t.Fatal(err)
	}
	s := stored("c1-replication", map[string]string{"username": "x", "password": "p"})
	if err := b.Update(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	b.reconcile(t)
	if got := b.condition(t); got.Status != metav1.ConditionTrue {
		t.Errorf("creating it was not enough: %+v", got)
	}
}

func TestSecretThatCannotBeMadeIsSaidInConditionAndEvent(t *testing.T) {
	b := newBench(t, aCluster())
	b.Fail("c1-root", errors.New("quota exceeded"))
	for range 2 {
		if _, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "c1"}}); err == nil {
			t.Error("no error: nobody would try again")
		}
	}
	if c := b.condition(t); c.Reason != api.ReasonApplyFailed || !strings.Contains(c.Message, "c1-root") || !strings.Contains(c.Message, "tried again") {
		t.Errorf("condition %+v", c)
	}
	if n := len(b.events.Events); n != 1 {
		t.Fatalf("%d events for one state of things", n)
	}
	if e := <-b.events.Events; !strings.Contains(e, api.EventApplyFailed) || !strings.Contains(e, "quota exceeded") {
		t.Errorf("event %q", e)
	}
}

func TestUsersSecretIsNeverWrittenOrOwned(t *testing.T) {
	c := aCluster()
	c.Spec.RootPasswordSecret = &corev1.LocalObjectReference{Name: "mine"}
	b := newBench(t, c)
	b.reconcile(t)
	if got := b.condition(t); got.Reason != api.ReasonSecretMissing || !strings.Contains(got.Message, "mine") {
		t.Errorf("condition %+v", got)
	}
	err := b.Server.Live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "mine"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the user's Secret was made: %v", err)
	}
	event := <-b.events.Events
	if !strings.Contains(event, "mine") || !strings.Contains(event, api.EventCredentialsIncomplete) {
		t.Errorf("event %q", event)
	}
	if err := b.Create(t.Context(), stored("mine", map[string]string{"password": "p"})); err != nil {
		t.Fatal(err)
	}
	b.Taken()
	b.reconcile(t)
	for _, w := range b.Taken() {
		if strings.Contains(w, "mine") {
			t.Errorf("the user's Secret was written: %s", w)
		}
	}
	if got := b.condition(t); got.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", got)
	}
}

func TestEverySecretOfAClusterLeadsBackToIt(t *testing.T) {
	c := aCluster()
	c.Spec.Bootstrap.InitDB.Secret = &corev1.LocalObjectReference{Name: "mine"}
	got := strings.Join(secretNames(c), " ")
	if got != "c1-root mine c1-replication c1-control" {
		t.Errorf("indexed by %s", got)
	}
}
