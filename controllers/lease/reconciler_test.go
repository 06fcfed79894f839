package lease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/fakeapi"
)

var start = time.Unix(1700000000, 0).UTC()

type bench struct {
	*fakeapi.Server
	r      *Reconciler
	events *events.FakeRecorder
}

func aCluster() *api.Cluster {
	c := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1", UID: "uid-of-c1"}}
	c.Spec.Instances = 2
	c.Spec.Storage.Size = resource.MustParse("1Gi")
	return c
}

func newBench(t *testing.T, existing ...client.Object) *bench {
	t.Helper()
	s := fakeapi.New(t, existing...)
	recorder := events.NewFakeRecorder(20)
	return &bench{s, &Reconciler{Client: s, Live: s.Live, Events: recorder, Now: func() time.Time { return start }}, recorder}
}

func (b *bench) reconcile(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := b.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "c1"}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func get[T client.Object](t *testing.T, b *bench, name string, into T) T {
	t.Helper()
	if err := b.Live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, into); err != nil {
		t.Fatal(err)
	}
	return into
}

func (b *bench) condition(t *testing.T) metav1.Condition {
	t.Helper()
	c := meta.FindStatusCondition(get(t, b, "c1", &api.Cluster{}).Status.Conditions, api.ConditionLeaseReady)
	if c == nil {
		t.Fatal("there is no condition LeaseReady")
	}
	return *c
}

func (b *bench) holder(t *testing.T) string {
	t.Helper()
	return *get(t, b, "c1-primary", &coordinationv1.Lease{}).Spec.HolderIdentity
}

func TestFirstHolder(t *testing.T) {
	for _, tc := range []struct {
		name string
		c    func(*api.Cluster)
		pod  bool
		want string
	}{
		{"a Cluster that never had a primary", func(*api.Cluster) {}, false, ""},
		{"its primary's Pod exists", func(c *api.Cluster) { c.Status.CurrentPrimary = "c1-2" }, true, "c1-2/uid-of-pod"},
		{"its primary's Pod is gone", func(c *api.Cluster) { c.Status.CurrentPrimary = "c1-2" }, false, "c1-2/unknown"},
		{"it had a primary that nobody knows", func(c *api.Cluster) { c.Status.EstablishedAt = &metav1.Time{Time: start} }, false, "unknown/unknown"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := aCluster()
			tc.c(c)
			existing := []client.Object{c}
			if tc.pod {
				existing = append(existing, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1-2", UID: "uid-of-pod"}})
			}
			b := newBench(t, existing...)
			b.reconcile(t)
			if got := b.holder(t); got != tc.want {
				t.Errorf("holder %q, want %q", got, tc.want)
			}
		})
	}
}

func TestLeaseIsMadeFromTheClusterAsItIsNotAsTheCacheHasIt(t *testing.T) {
	c := aCluster()
	c.Status.CurrentPrimary = "c1-2"
	b := newBench(t, c)
	old := fakeapi.New(t, aCluster())
	b.r.Client = staleCluster{b.Server, old}
	b.reconcile(t)
	if got := b.holder(t); got != "c1-2/unknown" {
		t.Errorf("holder %q", got)
	}
}

// staleCluster is a client whose cache holds an old Cluster.
type staleCluster struct {
	client.Client
	old client.Reader
}

func (s staleCluster) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(*api.Cluster); ok {
		return s.old.Get(ctx, key, o, opts...)
	}
	return s.Client.Get(ctx, key, o, opts...)
}

func TestSteadyStateWritesNothingAndRenewalsChangeNothing(t *testing.T) {
	b := newBench(t, aCluster())
	b.reconcile(t)
	b.reconcile(t)
	lease := get(t, b, "c1-primary", &coordinationv1.Lease{})
	lease.Spec.HolderIdentity = new("c1-1/pod")
	lease.Spec.AcquireTime = &metav1.MicroTime{Time: start.Add(time.Minute)}
	if err := b.Update(t.Context(), lease, client.FieldOwner("instance")); err != nil {
		t.Fatal(err)
	}
	b.reconcile(t)
	shown := get(t, b, "c1", &api.Cluster{}).Status.PrimaryLease
	if shown == nil || shown.Holder != "c1-1/pod" || !shown.Since.Time.Equal(start.Add(time.Minute)) {
		t.Fatalf("status %+v", shown)
	}
	b.Taken()
	for n := range 10 {
		renewed := get(t, b, "c1-primary", &coordinationv1.Lease{})
		renewed.Spec.RenewTime = &metav1.MicroTime{Time: start.Add(time.Duration(n) * time.Second)}
		if err := b.Server.Update(t.Context(), renewed, client.FieldOwner("instance")); err != nil {
			t.Fatal(err)
		}
		b.Taken()
		b.reconcile(t)
		if writes := b.Taken(); len(writes) > 0 {
			t.Errorf("writes after a renewal: %v", writes)
		}
	}
	if got := b.holder(t); got != "c1-1/pod" {
		t.Errorf("the operator wrote the holder: %q", got)
	}
}

func TestOnlyAChangeOfTheHolderWakesTheReconciler(t *testing.T) {
	held := func(by string, renewed int64) *coordinationv1.Lease {
		at := metav1.NewMicroTime(time.Unix(renewed, 0))
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: new(by), RenewTime: &at}}
	}
	if holderChanged.Update(event.UpdateEvent{ObjectOld: held("a", 1), ObjectNew: held("a", 2)}) {
		t.Error("a renewal wakes it")
	}
	if !holderChanged.Update(event.UpdateEvent{ObjectOld: held("a", 1), ObjectNew: held("", 1)}) {
		t.Error("a release does not wake it")
	}
	if !holderChanged.Delete(event.DeleteEvent{Object: held("a", 1)}) {
		t.Error("a deletion does not wake it")
	}
}

func TestForeignLeaseIsLeftAlone(t *testing.T) {
	foreign := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1-primary"}}
	foreign.Spec.HolderIdentity = new("somebody")
	b := newBench(t, aCluster(), foreign)
	b.Hide("c1-primary")
	if result := b.reconcile(t); result.RequeueAfter < time.Second {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
	if b.holder(t) != "somebody" {
		t.Error("the foreign Lease was changed")
	}
	b.reconcile(t)
	if c := b.condition(t); c.Status != metav1.ConditionFalse || c.Reason != api.ReasonForeignObject || !strings.Contains(c.Message, "Lease c1-primary") {
		t.Errorf("condition %+v", c)
	}
	if n := len(b.events.Events); n != 1 {
		t.Fatalf("%d events for one state of things", n)
	}
	if e := <-b.events.Events; !strings.Contains(e, "c1-primary") {
		t.Errorf("event %q", e)
	}
	get(t, b, "c1-1-instance", &corev1.ServiceAccount{}) // identities are made all the same
}

// A Lease may carry our label and be somebody else's all the same: whoever holds it is not our primary.
func TestForeignLeaseWithOurLabelIsNotShownAsOurs(t *testing.T) {
	foreign := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "c1-primary", Labels: map[string]string{api.LabelCluster: "c1"},
	}}
	foreign.Spec.HolderIdentity = new("somebody")
	b := newBench(t, aCluster(), foreign)
	if result := b.reconcile(t); result.RequeueAfter < time.Second {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
	if c := b.condition(t); c.Reason != api.ReasonForeignObject {
		t.Errorf("condition %+v", c)
	}
	if s := get(t, b, "c1", &api.Cluster{}).Status.PrimaryLease; s != nil {
		t.Errorf("shown as holder: %+v", s)
	}
	if err := b.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	b.reconcile(t)
	if c := b.condition(t); c.Status != metav1.ConditionTrue {
		t.Errorf("deleting it was not enough: %+v", c)
	}
}

func TestIdentityOrLeaseThatCannotBeMadeIsNamedInTheCondition(t *testing.T) {
	foreign := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1-1-instance"}}
	for _, tc := range []struct {
		name, object, reason string
		existing             []client.Object
		fail                 error
	}{
		{"a foreign ServiceAccount", "c1-1-instance", api.ReasonForeignObject, []client.Object{foreign}, nil},
		{"an identity is refused", "c1-2-instance", api.ReasonApplyFailed, nil, errors.New("quota exceeded")},
		{"the Lease is refused", "c1-primary", api.ReasonApplyFailed, nil, errors.New("quota exceeded")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, append(tc.existing, aCluster())...)
			b.Fail(tc.object, tc.fail)
			for range 2 {
				_, err := b.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "c1"}})
				if (err != nil) != (tc.fail != nil) {
					t.Errorf("error %v", err)
				}
			}
			c := b.condition(t)
			if c.Status != metav1.ConditionFalse || c.Reason != tc.reason || !strings.Contains(c.Message, tc.object) {
				t.Errorf("condition %+v", c)
			}
			if n := len(b.events.Events); n != 1 {
				t.Errorf("%d events for one state of things", n)
			}
			b.Fail(tc.object, nil)
			if tc.existing != nil {
				if err := b.Delete(t.Context(), foreign); err != nil {
					t.Fatal(err)
				}
			}
			b.reconcile(t)
			if c := b.condition(t); c.Status != metav1.ConditionTrue || c.Reason != api.ReasonReconciled {
				t.Errorf("once the cause is gone: %+v", c)
			}
		})
	}
}

func TestInstanceMayDoNoMoreThanItNeeds(t *testing.T) {
	b := newBench(t, aCluster())
	b.reconcile(t)
	role := get(t, b, "c1-2-instance", &rbacv1.Role{})
	// Each verb has its call in instance/agent/kube.go; what is not there is not given.
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{"mysql.cnmsql.co"}, Resources: []string{"clusters"}, ResourceNames: []string{"c1"}, Verbs: []string{"get", "watch"}},
		{APIGroups: []string{"mysql.cnmsql.co"}, Resources: []string{"clusters/status"}, ResourceNames: []string{"c1"}, Verbs: []string{"update"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{"c1-primary"}, Verbs: []string{"get", "update", "watch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, ResourceNames: []string{"c1-2"}, Verbs: []string{"get"}},
	}
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
	binding := get(t, b, "c1-2-instance", &rbacv1.RoleBinding{})
	if len(binding.Subjects) != 1 || binding.Subjects[0].Name != "c1-2-instance" || binding.RoleRef.Name != "c1-2-instance" {
		t.Errorf("binding %+v", binding)
	}
}

func TestIdentityOfARemovedInstanceGoesOnceItsPodIsGone(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1-2"}}
	b := newBench(t, aCluster(), pod)
	b.reconcile(t)
	c := get(t, b, "c1", &api.Cluster{})
	c.Spec.Instances = 1
	if err := b.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.Status.InstanceNames, c.Status.LatestGeneratedNode, c.Status.CurrentPrimary = []string{"c1-1"}, 2, "c1-1"
	if err := b.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	b.Taken()
	b.reconcile(t)
	if writes := b.Taken(); len(writes) > 0 {
		t.Errorf("writes while the Pod stops: %v", writes)
	}
	if err := b.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	b.Taken()
	b.reconcile(t)
	want := "delete *v1.RoleBinding c1-2-instance, delete *v1.Role c1-2-instance, delete *v1.ServiceAccount c1-2-instance"
	if writes := strings.Join(b.Taken(), ", "); writes != want {
		t.Errorf("writes once it is gone: %s", writes)
	}
	get(t, b, "c1-1-instance", &corev1.ServiceAccount{})
	b.reconcile(t)
	if writes := b.Taken(); len(writes) > 0 {
		t.Errorf("writes in steady state: %v", writes)
	}
}
