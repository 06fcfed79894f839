package certificates

import (
	"strings"
	"testing"
	"time"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/fakeapi"
)

type bench struct {
	*fakeapi.Server
	r         *Reconciler
	events    *events.FakeRecorder
	installed bool
}

func newBench(t *testing.T, existing ...client.Object) *bench {
	t.Helper()
	c := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1", UID: "uid-of-c1", Generation: 1}}
	c.Spec.Instances = 2
	c.Spec.Storage.Size = resource.MustParse("1Gi")
	recorder := events.NewFakeRecorder(20)
	b := &bench{Server: fakeapi.New(t, append(existing, c)...), events: recorder, installed: true}
	b.r = &Reconciler{Client: b.Server, Live: b.Live, Events: recorder, CertManager: func() (bool, error) { return b.installed, nil }}
	return b
}

func (b *bench) reconcile(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := b.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "c1"}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (b *bench) cluster(t *testing.T) *api.Cluster {
	t.Helper()
	c := &api.Cluster{}
	if err := b.Live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "c1"}, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (b *bench) condition(t *testing.T) *metav1.Condition {
	t.Helper()
	return meta.FindStatusCondition(b.cluster(t).Status.Conditions, api.ConditionCertificatesReady)
}

func (b *bench) certificates(t *testing.T) []cmv1.Certificate {
	t.Helper()
	list := &cmv1.CertificateList{}
	if err := b.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

var end = time.Date(2027, 3, 1, 12, 0, 0, 0, time.UTC)

// issue does what cert-manager does.
func (b *bench) issue(t *testing.T) {
	t.Helper()
	for _, c := range b.certificates(t) {
		c.Status.NotAfter = &metav1.Time{Time: end}
		c.Status.Conditions = []cmv1.CertificateCondition{{
			Type: cmv1.CertificateConditionReady, Status: cmmeta.ConditionTrue, ObservedGeneration: c.Generation,
		}}
		if err := b.Status().Update(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCertificatesAreAskedForBeforeInstancesExist(t *testing.T) {
	b := newBench(t)
	if result := b.reconcile(t); result.RequeueAfter != 0 {
		t.Errorf("polls every %s", result.RequeueAfter)
	}
	var names []string
	for _, c := range b.certificates(t) {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, " "); got != "c1-1-server-tls c1-2-server-tls c1-ca c1-client-tls c1-replication-tls" {
		t.Errorf("certificates %s", got)
	}
	if c := b.condition(t); c.Reason != api.ReasonCertificatePending || !strings.Contains(c.Message, "c1-2-server-tls") {
		t.Errorf("condition %+v", c)
	}
	b.issue(t)
	b.reconcile(t)
	if c := b.condition(t); c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
	if got := b.cluster(t).Status.Certificates.Expirations; len(got) != 5 || got["c1-ca"] != "2027-03-01T12:00:00Z" {
		t.Errorf("expirations %v", got)
	}
	b.Taken()
	for range 10 {
		b.reconcile(t)
	}
	if writes := b.Taken(); len(writes) > 0 {
		t.Errorf("writes in steady state: %v", writes)
	}
}

func TestAddedDNSNameAsksForANewCertificate(t *testing.T) {
	b := newBench(t)
	b.reconcile(t)
	b.issue(t)
	c := b.cluster(t)
	c.Spec.Certificates = &api.CertificatesConfiguration{ServerAltDNSNames: []string{"db.example.com"}}
	if err := b.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	b.Taken()
	b.reconcile(t)
	for _, c := range b.certificates(t) {
		asks := strings.Contains(strings.Join(c.Spec.DNSNames, " "), "db.example.com")
		if asks != strings.HasSuffix(c.Name, "-server-tls") {
			t.Errorf("%s asks for %v", c.Name, c.Spec.DNSNames)
		}
	}
}

func TestWithoutCertManagerThePersonIsToldOnceAndItIsTakenUpLater(t *testing.T) {
	b := newBench(t)
	b.installed = false
	for range 3 {
		if result := b.reconcile(t); result.RequeueAfter < 30*time.Second {
			t.Errorf("looks again after %s", result.RequeueAfter)
		}
	}
	if c := b.condition(t); c.Reason != api.ReasonCertManagerMissing || !strings.Contains(c.Message, "install cert-manager") {
		t.Errorf("condition %+v", c)
	}
	if len(b.events.Events) != 1 || len(b.Taken()) != 1 {
		t.Error("it is said more than once")
	}
	b.installed = true
	b.reconcile(t)
	if n := len(b.certificates(t)); n != 5 {
		t.Errorf("%d certificates", n)
	}
}

func TestForeignCertificateIsLeftAlone(t *testing.T) {
	foreign := &cmv1.Certificate{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1-client-tls"}}
	foreign.Spec.CommonName = "else"
	b := newBench(t, foreign)
	b.reconcile(t)
	if c := b.condition(t); c.Reason != api.ReasonForeignObject || !strings.Contains(c.Message, "c1-client-tls") {
		t.Errorf("condition %+v", c)
	}
	if e := <-b.events.Events; !strings.Contains(e, api.EventForeignObject) {
		t.Errorf("event %q", e)
	}
	for _, c := range b.certificates(t) {
		if c.Name == "c1-client-tls" && c.Spec.CommonName != "else" {
			t.Error("the foreign Certificate was changed")
		}
	}
}

func TestIssued(t *testing.T) {
	with := func(status cmmeta.ConditionStatus, observed int64) *cmv1.Certificate {
		c := &cmv1.Certificate{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
		c.Status.Conditions = []cmv1.CertificateCondition{{Type: cmv1.CertificateConditionReady, Status: status, ObservedGeneration: observed, Message: "why"}}
		return c
	}
	for _, tc := range []struct {
		name string
		cert *cmv1.Certificate
		is   bool
	}{
		{"not seen yet", nil, false},
		{"no answer", &cmv1.Certificate{}, false},
		{"issued", with(cmmeta.ConditionTrue, 2), true},
		{"issued for what was asked before", with(cmmeta.ConditionTrue, 1), false},
		{"not issued", with(cmmeta.ConditionFalse, 2), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			is, why := issued(tc.cert)
			if is != tc.is || (!is && why == "") {
				t.Errorf("issued %v, %q", is, why)
			}
		})
	}
}
