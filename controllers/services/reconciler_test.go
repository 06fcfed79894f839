package services_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/fakeapi"
	"cnmsql.co/operator/controllers/services"
)

var key = client.ObjectKey{Namespace: "shop", Name: "c1"}

type bench struct {
	*fakeapi.Server
	*services.Reconciler
	events *events.FakeRecorder
}

func newBench(t *testing.T, existing ...client.Object) *bench {
	t.Helper()
	c := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1", UID: "uid-of-c1", Generation: 1}}
	c.Spec.Instances = 2
	c.Spec.Storage.Size = resource.MustParse("1Gi")
	s := fakeapi.New(t, append(existing, c)...)
	recorder := events.NewFakeRecorder(10)
	return &bench{s, &services.Reconciler{Client: s, Live: s.Live, Events: recorder}, recorder}
}

func (b *bench) reconcile(t *testing.T) ctrl.Result {
	t.Helper()
	result, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (b *bench) service(t *testing.T, name string) *corev1.Service {
	t.Helper()
	s := &corev1.Service{}
	if err := b.Server.Live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func (b *bench) condition(t *testing.T) *metav1.Condition {
	t.Helper()
	c := &api.Cluster{}
	if err := b.Server.Live.Get(t.Context(), key, c); err != nil {
		t.Fatal(err)
	}
	return meta.FindStatusCondition(c.Status.Conditions, api.ConditionServicesReady)
}

func TestEveryServiceIsMadeAndThenNothingIsWritten(t *testing.T) {
	b := newBench(t)
	b.reconcile(t)
	for _, name := range []string{"c1-rw", "c1-ro", "c1-r", "c1-1", "c1-2"} {
		b.service(t, name)
	}
	if c := b.condition(t); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
	b.Taken()
	for range 10 {
		if result := b.reconcile(t); result.RequeueAfter != 0 {
			t.Errorf("asks to be called again after %s", result.RequeueAfter)
		}
	}
	if writes := b.Taken(); len(writes) > 0 {
		t.Errorf("writes in steady state: %v", writes)
	}
}

func TestFieldsOfCloudControllersStay(t *testing.T) {
	b := newBench(t)
	b.reconcile(t)
	s := b.service(t, "c1-rw")
	s.Annotations["cloud.example.com/id"] = "lb-7"
	s.Spec.ClusterIP, s.Spec.ClusterIPs = "10.0.0.7", []string{"10.0.0.7"}
	s.Spec.Ports[0].NodePort = 31306
	s.Spec.HealthCheckNodePort = 31307
	s.Spec.LoadBalancerClass = new("cloud")
	if err := b.Update(t.Context(), s, client.FieldOwner("cloud")); err != nil {
		t.Fatal(err)
	}
	b.Taken()
	for range 10 {
		b.reconcile(t)
	}
	if writes := b.Taken(); len(writes) > 0 {
		t.Errorf("writes in steady state: %v", writes)
	}
	s.Spec.Selector = map[string]string{"app": "hijacked"}
	s.ResourceVersion = b.service(t, "c1-rw").ResourceVersion
	if err := b.Update(t.Context(), s, client.FieldOwner("kubectl")); err != nil {
		t.Fatal(err)
	}
	b.reconcile(t)
	got := b.service(t, "c1-rw")
	want := map[string]string{api.LabelCluster: "c1", api.LabelRole: api.RolePrimary, api.LabelRoutable: "true"}
	if !maps.Equal(got.Spec.Selector, want) {
		t.Errorf("selector %v", got.Spec.Selector)
	}
	if got.Annotations["cloud.example.com/id"] != "lb-7" || got.Spec.ClusterIP != "10.0.0.7" || got.Spec.Ports[0].NodePort != 31306 || got.Spec.LoadBalancerClass == nil {
		t.Errorf("a foreign field was lost: %v %+v", got.Annotations, got.Spec)
	}
}

func TestForeignServiceIsLeftAloneAndSaidOnce(t *testing.T) {
	foreign := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1-ro"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "else"}},
	}
	b := newBench(t, foreign)
	b.Hide("c1-ro") // it does not carry our label, so the cache does not hold it
	before := b.service(t, "c1-ro").ResourceVersion
	if result := b.reconcile(t); result.RequeueAfter < time.Second {
		t.Errorf("looks again after %s", result.RequeueAfter)
	}
	b.reconcile(t)
	if b.service(t, "c1-ro").ResourceVersion != before {
		t.Error("the foreign Service was changed")
	}
	c := b.condition(t)
	if c.Status != metav1.ConditionFalse || c.Reason != api.ReasonForeignObject || !strings.Contains(c.Message, "c1-ro") {
		t.Errorf("condition %+v", c)
	}
	if n := len(b.events.Events); n != 1 {
		t.Errorf("%d events", n)
	}
	b.service(t, "c1-r") // the others are made all the same
}

func TestErrorOverOneServiceDoesNotStopTheOthers(t *testing.T) {
	b := newBench(t)
	b.Fail("c1-rw", errors.New("quota exceeded"))
	if _, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err == nil {
		t.Error("no error: nobody would try again")
	}
	b.service(t, "c1-2")
	if c := b.condition(t); c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "quota exceeded") || !strings.Contains(c.Message, "c1-rw") {
		t.Errorf("condition %+v", c)
	}
	if e := <-b.events.Events; !strings.Contains(e, api.EventApplyFailed) || !strings.Contains(e, "c1-rw") {
		t.Errorf("event %q", e)
	}
	b.Fail("c1-rw", nil)
	b.reconcile(t)
	if c := b.condition(t); c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
}

func TestClusterThatIsGoneOrBeingDeletedIsLeftAlone(t *testing.T) {
	b := newBench(t)
	if _, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "other"}}); err != nil {
		t.Error(err)
	}
	c := &api.Cluster{}
	if err := b.Server.Live.Get(t.Context(), key, c); err != nil {
		t.Fatal(err)
	}
	c.Finalizers = []string{"example.com/keep"}
	if err := b.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	b.Taken()
	b.reconcile(t)
	if writes := b.Taken(); len(writes) > 0 {
		t.Errorf("writes %v", writes)
	}
}

func TestServiceOfARemovedInstanceGoesOnceItsPodIsGone(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1-2"}}
	b := newBench(t, pod)
	b.reconcile(t)
	c := &api.Cluster{}
	if err := b.Server.Live.Get(t.Context(), key, c); err != nil {
		t.Fatal(err)
	}
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
	if writes := strings.Join(b.Taken(), ", "); writes != "delete *v1.Service c1-2" {
		t.Errorf("writes once it is gone: %s", writes)
	}
	b.service(t, "c1-1")
	b.reconcile(t)
	if writes := b.Taken(); len(writes) > 0 {
		t.Errorf("writes in steady state: %v", writes)
	}
}

// patch changes the Cluster as a user does.
func (b *bench) patch(t *testing.T, change func(*api.Cluster)) {
	t.Helper()
	c := &api.Cluster{}
	if err := b.Server.Live.Get(t.Context(), key, c); err != nil {
		t.Fatal(err)
	}
	change(c)
	if err := b.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	b.Taken()
}

func TestServicesThatAreNotAskedForAnyMoreGoIfTheyAreOurs(t *testing.T) {
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1-old", Labels: map[string]string{api.LabelCluster: "c1"}}}
	b := newBench(t, foreign)
	b.patch(t, func(c *api.Cluster) {
		c.Spec.Managed = &api.ManagedConfiguration{Services: &api.ManagedServices{Additional: []api.ManagedService{{Name: "lb", SelectorType: api.ServiceRO}}}}
	})
	b.reconcile(t)
	if got := b.service(t, "c1-lb").Spec.Selector[api.LabelRole]; got != api.RoleReplica {
		t.Errorf("it leads to the role %q", got)
	}
	b.patch(t, func(c *api.Cluster) { c.Spec.Managed.Services.Additional[0].SelectorType = api.ServiceRW })
	b.reconcile(t)
	if got := b.service(t, "c1-lb").Spec.Selector[api.LabelRole]; got != api.RolePrimary {
		t.Errorf("it leads to the role %q", got)
	}
	b.patch(t, func(c *api.Cluster) {
		c.Spec.Managed.Services = &api.ManagedServices{DisabledDefaultServices: []api.DefaultService{"ro"}}
	})
	b.reconcile(t)
	got := b.Taken()
	slices.Sort(got)
	var deleted []string
	for _, write := range got {
		if strings.HasPrefix(write, "delete") {
			deleted = append(deleted, write)
		}
	}
	if want := []string{"delete *v1.Service c1-lb", "delete *v1.Service c1-ro"}; !slices.Equal(deleted, want) {
		t.Errorf("deleted %v, want %v", deleted, want)
	}
	b.service(t, "c1-old")
	for range 10 {
		b.reconcile(t)
	}
	if writes := b.Taken(); len(writes) > 0 {
		t.Errorf("writes in steady state: %v", writes)
	}
}

func TestWhatAUserTakesBackOrChangesIsApplied(t *testing.T) {
	b := newBench(t)
	b.patch(t, func(c *api.Cluster) {
		c.Spec.Managed = &api.ManagedConfiguration{Services: &api.ManagedServices{Template: &api.ServiceTemplate{
			Metadata: api.EmbeddedMetadata{Labels: map[string]string{"team": "x"}},
			Spec:     api.ServiceTemplateSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerSourceRanges: []string{"10.0.0.0/8"}},
		}}}
	})
	b.reconcile(t)
	s := b.service(t, "c1-rw")
	if s.Labels["team"] != "x" || s.Spec.Selector["team"] != "" || s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		t.Errorf("labels %v, selector %v, type %s", s.Labels, s.Spec.Selector, s.Spec.Type)
	}
	b.patch(t, func(c *api.Cluster) {
		c.Spec.Managed.Services.Template.Spec.LoadBalancerSourceRanges = []string{"10.1.0.0/16"}
	})
	b.reconcile(t)
	if got := b.service(t, "c1-rw").Spec.LoadBalancerSourceRanges; !slices.Equal(got, []string{"10.1.0.0/16"}) {
		t.Errorf("ranges %v", got)
	}
	b.patch(t, func(c *api.Cluster) { c.Spec.Managed = nil })
	b.reconcile(t)
	s = b.service(t, "c1-rw")
	if s.Spec.Type != corev1.ServiceTypeClusterIP || len(s.Spec.LoadBalancerSourceRanges) > 0 || s.Labels["team"] != "" {
		t.Errorf("taken back: type %s, ranges %v, labels %v", s.Spec.Type, s.Spec.LoadBalancerSourceRanges, s.Labels)
	}
}
