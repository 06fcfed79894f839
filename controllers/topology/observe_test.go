package topology

import (
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
	"cnmsql.co/operator/controllers/topology/core"
)

func claims(c *api.Cluster, instance string) []client.Object {
	var all []client.Object
	for _, p := range objects.PVCs(c, instance) {
		all = append(all, p)
	}
	return all
}

func TestInstancesAreAllThatAnythingNames(t *testing.T) {
	c := aCluster()
	c.Status.InstanceNames = []string{"c1-1", "c1-2"}
	foreign := aPod("c1-7")
	foreign.OwnerReferences[0].UID = "uid-before"
	odd := aPod("c1-rw")
	existing := append(claims(c, "c1-10"), c, aPod("c1-2"), aPod("c1-3"), foreign, odd)
	b := newBench(t, existing...)
	b.must()
	var names []string
	for _, i := range b.last().Instances {
		names = append(names, i.Name)
	}
	if want := []string{"c1-1", "c1-2", "c1-3", "c1-10"}; !slices.Equal(names, want) {
		t.Errorf("instances %v, want %v", names, want)
	}
	s := b.last()
	if i := s.Instances[3]; len(i.Volumes) != 1 || len(i.MissingVolumes) != 0 || i.Pod != nil || i.CertificateReady {
		t.Errorf("c1-10 %+v", i)
	}
	if i := s.Instances[1]; i.Pod == nil || !i.Pod.Ready || !i.Pod.Running || i.Pod.Outdated || !i.CertificateReady || len(i.MissingVolumes) != 1 {
		t.Errorf("c1-2 %+v %+v", i, i.Pod)
	}
	if len(b.instances.followed) != 3 { // c1-rw included: it is ours by its owner
		t.Errorf("followed %v", b.instances.followed)
	}
}

func TestChangedSpecificationMakesPodsOutdated(t *testing.T) {
	c := aCluster()
	c.Spec.ImageName = "mysql:8.4"
	b := newBench(t, c, aPod("c1-1"))
	b.must()
	if !b.last().Instances[0].Pod.Outdated {
		t.Error("not outdated")
	}
}

func TestWhatIsNotThereYetIsNamed(t *testing.T) {
	c := aCluster()
	c.Status.Conditions[0].Status, c.Status.Conditions[0].Message = metav1.ConditionFalse, "the Secret mine has no password"
	b := newBench(t, c)
	b.must()
	if got := b.last().NotReadyYet; !strings.Contains(got, "the Secret mine has no password") {
		t.Errorf("not ready: %q", got)
	}
	b = newBench(t, aCluster())
	if err := b.Server.Client.Delete(t.Context(), aSecret("c1-replication-tls")); err != nil {
		t.Fatal(err)
	}
	b.must()
	if got := b.last().NotReadyYet; got != "certificates: the Secret c1-replication-tls" {
		t.Errorf("not ready: %q", got)
	}
}

func TestBadSpecificationIsNamedByItsField(t *testing.T) {
	c := aCluster()
	c.Spec.MySQL.Parameters = map[string]string{"super_read_only": "OFF"}
	b := newBench(t, c)
	b.must()
	if got := b.last().SpecProblem; !strings.Contains(got, "spec.mysql.parameters") {
		t.Errorf("problem %q", got)
	}
}

func TestLeaseAgesFromWhenItsChangeWasSeen(t *testing.T) {
	lease := aLease("c1-1/x") // renewed long ago by the clock on the wall
	lease.ResourceVersion = "1"
	b := newBench(t, aCluster(), lease)
	b.clock = start.Add(24 * time.Hour)
	look := func() core.Lease { b.must(); return b.last().Lease }
	if got := look(); !got.Known || got.Holder != "c1-1/x" || got.Unchanged != 0 {
		t.Errorf("first look: %+v", got)
	}
	b.clock = b.clock.Add(14 * time.Second)
	if got := look(); got.Unchanged != 14*time.Second || got.Expired() {
		t.Errorf("14 s later: %+v", got)
	}
	there := &coordinationv1.Lease{}
	if err := b.Live.Get(t.Context(), client.ObjectKeyFromObject(lease), there); err != nil {
		t.Fatal(err)
	}
	old := there.DeepCopy()
	there.Spec.RenewTime = &metav1.MicroTime{Time: start.Add(time.Second)}
	there.Annotations = map[string]string{api.AnnotationHandoffGTID: "nonsense", api.AnnotationHandoffAttempt: "a"}
	if err := b.Server.Client.Update(t.Context(), there); err != nil {
		t.Fatal(err)
	}
	b.clock = b.clock.Add(500 * time.Millisecond)
	if got := look(); got.Unchanged != 0 || got.Handoff != nil || got.HandoffAttempt != "a" {
		t.Errorf("renewed: %+v", got)
	}
	b.clock = b.clock.Add(time.Second)
	if got := b.r.leases.saw(shop, old, b.clock); got.snapshot(b.clock).Unchanged != time.Second {
		t.Errorf("an old copy counts as a change: %+v", got)
	}
	b.clock = b.clock.Add(14 * time.Second)
	if got := look(); !got.Expired() {
		t.Errorf("15 s after the renewal: %+v", got)
	}
}

func TestRenewalsAreNotedAndWakeNobody(t *testing.T) {
	before, renewed, released := aLease("c1-1/x"), aLease("c1-1/x"), aLease("")
	renewed.Spec.RenewTime = &metav1.MicroTime{Time: start.Add(time.Hour)}
	if holderChanged(before, renewed) || !holderChanged(before, released) {
		t.Error("holderChanged")
	}
	handed := aLease("")
	handed.Annotations = map[string]string{api.AnnotationHandoffGTID: "x"}
	if !holderChanged(released, handed) {
		t.Error("a handoff wakes nobody")
	}
	r := &Reconciler{Now: func() time.Time { return start }}
	h := r.leaseHandler()
	h.Update(t.Context(), event.UpdateEvent{ObjectOld: before, ObjectNew: renewed}, nil) // a nil queue: nothing is added
	if got := r.leases.seen[shop]; got.Holder != "c1-1/x" || !got.changedAt.Equal(start) {
		t.Errorf("noted %+v", got)
	}
}

func TestOwnStatusWritesWakeNobody(t *testing.T) {
	before := aCluster()
	for name, tc := range map[string]struct {
		change func(*api.Cluster)
		want   bool
	}{
		"phase": {func(c *api.Cluster) { c.Status.Phase = "x" }, false},
		"sets":  {func(c *api.Cluster) { c.Status.GTIDExecutedByInstance = map[string]string{"a": "b"} }, false},
		"own condition": {func(c *api.Cluster) {
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: "Ready"})
		}, false},
		"credentials":    {func(c *api.Cluster) { c.Status.Conditions[0].Status = metav1.ConditionFalse }, true},
		"target primary": {func(c *api.Cluster) { c.Status.TargetPrimary = "c1-2" }, true},
		"claim":          {func(c *api.Cluster) { c.Status.CurrentPrimaryGeneration = 2 }, true},
		"specification":  {func(c *api.Cluster) { c.Generation++ }, true},
		"annotation":     {func(c *api.Cluster) { c.Annotations = map[string]string{"a": "b"} }, true},
		"deletion":       {func(c *api.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: start} }, true},
	} {
		after := before.DeepCopy()
		tc.change(after)
		if got := clusterChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !clusterChanged.Create(event.CreateEvent{Object: before}) {
		t.Error("a Cluster that is there when the operator starts is not looked at")
	}
}

func TestWhatIsWaitedForIsLookedAtInTime(t *testing.T) {
	pending := aPod("c1-1")
	pending.CreationTimestamp, pending.Status = metav1.NewTime(start), corev1.PodStatus{Phase: corev1.PodPending}
	b := newBench(t, aCluster(), aLease(""), pending)
	b.clock = start.Add(time.Minute - 3*time.Second)
	b.say = core.Decide
	if result := b.must(); result.RequeueAfter != 3*time.Second {
		t.Errorf("looked at again after %s", result.RequeueAfter)
	}
}
