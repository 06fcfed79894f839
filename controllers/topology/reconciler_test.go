package topology

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/fakeapi"
	"cnmsql.co/operator/controllers/internal/observer"
	"cnmsql.co/operator/controllers/objects"
	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/instance/protocol"
)

var (
	shop  = types.NamespacedName{Namespace: "shop", Name: "c1"}
	start = time.Unix(1_700_000_000, 0)
)

// instances plays the observer.
type instances struct {
	followed  []observer.Target
	reports   map[string]*protocol.Report
	answers   map[string]*protocol.Report
	refreshed int
	onRefresh func()
	forgotten []types.NamespacedName
}

func (i *instances) Follow(_ types.NamespacedName, _ string, _ observer.Credentials, targets []observer.Target) error {
	i.followed = targets
	return nil
}

func (i *instances) Forget(c types.NamespacedName) { i.forgotten = append(i.forgotten, c) }

func (i *instances) Look(_ types.NamespacedName, instance string) observer.Sight {
	return observer.Sight{Report: i.reports[instance], Asked: true}
}

func (i *instances) Refresh(context.Context, types.NamespacedName) map[string]*protocol.Report {
	i.refreshed++
	if i.onRefresh != nil {
		i.onRefresh()
	}
	return i.answers
}

// bench is a reconciler before an API server in memory.
type bench struct {
	*fakeapi.Server
	t         *testing.T
	r         *Reconciler
	instances *instances
	events    *events.FakeRecorder
	clock     time.Time
	// seen are the snapshots that were decided on; say is what is decided.
	seen []core.Snapshot
	say  func(core.Snapshot) core.Decision
}

func aCluster() *api.Cluster {
	c := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1", UID: "uid-of-c1", Generation: 1}}
	c.Spec.Instances = 2
	c.Spec.Storage.Size = resource.MustParse("1Gi")
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: api.ConditionCredentialsReady, Status: metav1.ConditionTrue, Reason: "Reconciled"})
	return c
}

func aSecret(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{api.LabelCluster: "c1"}}}
}

func aPod(name string) *corev1.Pod {
	c := aCluster()
	c.Default()
	pod := objects.Pod(c, name, objects.Options{})
	pod.UID = types.UID("pod-" + name)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP = "10.0.0.1"
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.ContainerMySQL, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return pod
}

func aLease(holder string) *coordinationv1.Lease { return objects.Lease(aCluster(), holder, start) }

func newBench(t *testing.T, existing ...client.Object) *bench {
	t.Helper()
	for _, name := range []string{"c1-ca", "c1-client-tls", "c1-replication-tls", "c1-1-server-tls", "c1-2-server-tls"} {
		existing = append(existing, aSecret(name))
	}
	b := &bench{Server: fakeapi.New(t, existing...), t: t, instances: &instances{}, events: events.NewFakeRecorder(50), clock: start}
	b.say = func(s core.Snapshot) core.Decision { return core.Decision{Status: s.Cluster.Status} }
	b.r = &Reconciler{
		Client: b.Server, Live: b.Live, Secrets: b.Live, Instances: b.instances, Events: b.events,
		Decide:     func(s core.Snapshot) core.Decision { b.seen = append(b.seen, s); return b.say(s) },
		Now:        func() time.Time { return b.clock },
		NewAttempt: func() string { return "attempt" },
	}
	return b
}

// does scripts a decision: the status as it is with a new phase reason (none: unchanged), then actions.
func (b *bench) does(reason string, actions ...core.Action) {
	b.say = func(s core.Snapshot) core.Decision {
		d := core.Decision{Rule: "scripted", Actions: actions, Recheck: 7 * time.Second, Events: []core.Event{{Reason: "Told", Message: "it"}}}
		s.Cluster.Status.DeepCopyInto(&d.Status)
		if reason != "" {
			d.Status.PhaseReason = reason
		}
		return d
	}
}

func (b *bench) reconcile() (ctrl.Result, error) {
	b.t.Helper()
	return b.r.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: shop})
}

func (b *bench) must() ctrl.Result {
	b.t.Helper()
	result, err := b.reconcile()
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

func (b *bench) last() core.Snapshot { return b.seen[len(b.seen)-1] }

func (b *bench) told() (all []string) {
	for {
		select {
		case e := <-b.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

func (b *bench) pod(name string) *corev1.Pod {
	b.t.Helper()
	pod := &corev1.Pod{}
	if err := b.Live.Get(b.t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, pod); err != nil {
		b.t.Fatal(err)
	}
	return pod
}

func (b *bench) wrote(want ...string) {
	b.t.Helper()
	if got := b.Taken(); !slices.Equal(got, want) {
		b.t.Errorf("writes %q, want %q", got, want)
	}
}

func TestRulesMakeAClusterAndThenLeaveItAlone(t *testing.T) {
	b := newBench(t, aCluster(), aLease(""))
	b.say = core.Decide
	b.must()
	b.wrote("patch status *v1alpha1.Cluster c1", "create *v1.PersistentVolumeClaim c1-1")
	b.must()
	b.wrote("create *v1.Pod c1-1")
	b.must() // the Pod is there now: the phase says so
	b.wrote("patch status *v1alpha1.Cluster c1")
	for range 3 {
		if result := b.must(); result.RequeueAfter <= 0 {
			t.Error("never looked at again")
		}
		b.wrote()
	}
}

func TestStatusIsCommittedBeforeAnythingIsDone(t *testing.T) {
	b := newBench(t, aCluster())
	b.does("new", core.Action{Kind: core.CreateVolumes, Instance: "c1-1"}, core.Action{Kind: core.CreatePod, Instance: "c1-1"})
	if result := b.must(); result.RequeueAfter != 7*time.Second {
		t.Errorf("result %+v", result)
	}
	b.wrote("patch status *v1alpha1.Cluster c1", "create *v1.PersistentVolumeClaim c1-1", "create *v1.Pod c1-1")
	if got := b.told(); len(got) != 1 {
		t.Errorf("events %q", got)
	}
}

func TestConflictMeansThatNothingIsDone(t *testing.T) {
	b := newBench(t, aCluster())
	b.does("new", core.Action{Kind: core.CreatePod, Instance: "c1-1"})
	decide := b.say
	b.say = func(s core.Snapshot) core.Decision {
		b.touchCluster()
		return decide(s)
	}
	result := b.must()
	if result.RequeueAfter != soon {
		t.Errorf("result %+v", result)
	}
	b.wrote("patch status *v1alpha1.Cluster c1")
	if got := b.told(); len(got) != 0 {
		t.Errorf("events %q", got)
	}
}

// touchCluster changes the Cluster as somebody else does.
func (b *bench) touchCluster() {
	b.t.Helper()
	live := &api.Cluster{}
	if err := b.Live.Get(b.t.Context(), shop, live); err != nil {
		b.t.Fatal(err)
	}
	live.Annotations = map[string]string{"touched": time.Now().String()}
	if err := b.Server.Client.Update(b.t.Context(), live); err != nil {
		b.t.Fatal(err)
	}
	b.Taken()
}

func TestNothingIsDoneByAnOldCopyOfTheCluster(t *testing.T) {
	b := newBench(t, aCluster(), aPod("c1-1"))
	b.does("", core.Action{Kind: core.DeletePod, Instance: "c1-1", PodUID: "pod-c1-1"})
	decide := b.say
	b.say = func(s core.Snapshot) core.Decision { b.touchCluster(); return decide(s) }
	if result := b.must(); result.RequeueAfter != soon {
		t.Errorf("result %+v", result)
	}
	b.wrote()
	b.say = decide
	b.must()
	b.wrote("delete *v1.Pod c1-1")
}

func TestActionsOfOneInstanceAreDoneInOrderUpToTheFirstThatFails(t *testing.T) {
	b := newBench(t, aCluster(), aPod("c1-1"))
	b.Fail("c1-1", errors.New("the network is down"))
	label := core.Action{Kind: core.LabelPod, Instance: "c1-1", PodUID: "pod-c1-1", Role: api.RoleReplica, Routable: true}
	b.does("new", label, core.Action{Kind: core.DeletePod, Instance: "c1-1", PodUID: "pod-c1-1"})
	_, err := b.reconcile()
	if err == nil || !strings.Contains(err.Error(), "label Pod c1-1") {
		t.Errorf("error %v", err)
	}
	b.wrote("patch status *v1alpha1.Cluster c1", "patch *v1.Pod c1-1")
	if got := b.told(); len(got) != 1 {
		t.Errorf("the events of what was committed: %q", got)
	}
	b.does("", label)
	if _, err := b.reconcile(); err == nil {
		t.Error("no error")
	}
	if got := b.told(); len(got) != 0 {
		t.Errorf("the events of what was neither committed nor done: %q", got)
	}
}

func TestWhatFailsForOneInstanceDoesNotKeepAnotherFromBeingHelped(t *testing.T) {
	for name, failure := range map[string]error{"refused": forbidden("exceeded quota: q"), "failed": errors.New("the network is down")} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, aCluster(), aPod("c1-1"))
			b.Fail("c1-2", failure)
			b.does("",
				core.Action{Kind: core.CreateVolumes, Instance: "c1-2"},
				core.Action{Kind: core.CreatePod, Instance: "c1-2", Done: &core.Event{Reason: "Done", Message: "c1-2"}},
				core.Action{Kind: core.CreatePod, Instance: "c1-3", Done: &core.Event{Reason: "Done", Message: "c1-3"}})
			if _, err := b.reconcile(); name == "failed" && (err == nil || !strings.Contains(err.Error(), "create volumes c1-2: the network is down")) {
				t.Errorf("error %v", err)
			}
			b.wrote("create *v1.PersistentVolumeClaim c1-2", "create *v1.Pod c1-3")
			if got := b.told(); !slices.Equal(got, []string{"Normal Done c1-3"}) {
				t.Errorf("events %q: only of what was done", got)
			}
		})
	}
}

func TestNoPrimarysLabelIsGivenAfterALabelThatCouldNotBeTaken(t *testing.T) {
	take := core.Action{Kind: core.LabelPod, Instance: "c1-1", PodUID: "pod-c1-1"}
	give := core.Action{Kind: core.LabelPod, Instance: "c1-2", PodUID: "pod-c1-2", Role: api.RolePrimary, Routable: true}
	create := core.Action{Kind: core.CreatePod, Instance: "c1-3"}
	for name, failure := range map[string]error{"refused": forbidden("a policy"), "failed": errors.New("the network is down")} {
		for _, first := range []bool{false, true} {
			// No Pod shows the primary's label, so that nothing but the order protects.
			b := newBench(t, aCluster(), aPod("c1-1"), aPod("c1-2"))
			b.Fail("c1-1", failure)
			b.does("", take, give, create)
			if first {
				decide := b.say
				b.say = func(s core.Snapshot) core.Decision {
					d := decide(s)
					d.First, d.Actions = []core.Action{take}, []core.Action{give, create}
					return d
				}
			}
			_, _ = b.reconcile()
			if got := b.Taken(); !slices.Equal(got, []string{"patch *v1.Pod c1-1", "create *v1.Pod c1-3"}) {
				t.Errorf("%s, first %t: writes %q", name, first, got)
			}
		}
	}
}

func TestOnlyThePodThatWasMeantIsTouched(t *testing.T) {
	for _, kind := range []core.ActionKind{core.DeletePod, core.LabelPod} {
		b := newBench(t, aCluster(), aPod("c1-1"))
		b.does("", core.Action{Kind: kind, Instance: "c1-1", PodUID: "pod-before", Role: api.RolePrimary})
		if result := b.must(); result.RequeueAfter != soon {
			t.Errorf("%s: result %+v", kind, result)
		}
		if pod := b.pod("c1-1"); pod.DeletionTimestamp != nil || pod.Labels[api.LabelRole] != "" {
			t.Errorf("%s: the other Pod was touched: %+v", kind, pod.ObjectMeta)
		}
		b.does("", core.Action{Kind: kind, Instance: "c1-9", PodUID: "pod-before", Role: api.RoleReplica})
		if _, err := b.reconcile(); err != nil {
			t.Errorf("%s of a Pod that is gone: %v", kind, err)
		}
	}
}

func TestLabelsAreSetAndTaken(t *testing.T) {
	b := newBench(t, aCluster(), aPod("c1-1"))
	b.does("", core.Action{Kind: core.LabelPod, Instance: "c1-1", PodUID: "pod-c1-1", Role: api.RolePrimary, Routable: true})
	b.must()
	if got := b.pod("c1-1").Labels; got[api.LabelRole] != api.RolePrimary || got[api.LabelRoutable] != "true" || got[api.LabelCluster] != "c1" {
		t.Errorf("labels %v", got)
	}
	b.does("", core.Action{Kind: core.LabelPod, Instance: "c1-1", PodUID: "pod-c1-1"})
	b.must()
	if got := b.pod("c1-1").Labels; got[api.LabelRoutable] != "false" {
		t.Errorf("labels %v", got)
	} else if _, there := got[api.LabelRole]; there {
		t.Errorf("labels %v", got)
	}
}

func TestThePrimarysLabelDoesNotWaitForTheStatus(t *testing.T) {
	b := newBench(t, aCluster(), aPod("c1-1"))
	b.does("new")
	decide := b.say
	b.say = func(s core.Snapshot) core.Decision {
		d := decide(s)
		d.First = []core.Action{{Kind: core.LabelPod, Instance: "c1-1", PodUID: "pod-c1-1", Role: api.RolePrimary, Routable: true}}
		return d
	}
	b.must()
	b.wrote("patch *v1.Pod c1-1", "patch status *v1alpha1.Cluster c1")
	// What keeps it from being given does not keep the status from being told.
	b.say = func(s core.Snapshot) core.Decision {
		d := decide(s)
		d.Status.PhaseReason = "newer"
		d.First = []core.Action{{Kind: core.LabelPod, Instance: "c1-1", PodUID: "pod-c1-1", Role: api.RolePrimary, Routable: true}}
		return d
	}
	b.told()
	b.Fail("c1-1", errors.New("a policy forbids it"))
	if _, err := b.reconcile(); err == nil {
		t.Error("the failure is not told")
	}
	b.wrote("patch *v1.Pod c1-1", "patch status *v1alpha1.Cluster c1")
	if got := b.told(); len(got) == 0 {
		t.Error("the events of what was committed are lost")
	}
	b.Fail("c1-1", nil)
	// Not by an old copy of the Cluster, though.
	scripted := b.say
	b.say = func(s core.Snapshot) core.Decision { b.touchCluster(); return scripted(s) }
	b.must()
	b.wrote()
}

func TestPrimarysLabelIsNotGivenWhileAnotherPodHasIt(t *testing.T) {
	other := aPod("c1-2")
	other.Labels[api.LabelRole] = api.RolePrimary
	b := newBench(t, aCluster(), aPod("c1-1"), other)
	b.does("", core.Action{Kind: core.LabelPod, Instance: "c1-1", PodUID: "pod-c1-1", Role: api.RolePrimary, Routable: true})
	if result := b.must(); result.RequeueAfter != soon {
		t.Errorf("result %+v", result)
	}
	b.wrote()
}

func TestWhatExistsAlreadyIsRightIfItIsOurs(t *testing.T) {
	foreign := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1-2"}}
	b := newBench(t, aCluster(), aPod("c1-1"), foreign)
	b.does("", core.Action{Kind: core.CreatePod, Instance: "c1-1"})
	b.must()
	b.wrote("create *v1.Pod c1-1")
	b.does("", core.Action{Kind: core.CreateVolumes, Instance: "c1-2"})
	b.must()
	b.clock = b.clock.Add(refusalShown)
	b.must()
	if i := b.last().Instances[len(b.last().Instances)-1]; i.Name == "c1-2" {
		t.Errorf("somebody else's claim makes an instance: %+v", i)
	}
	if got, reason := b.r.refusals.shown(shop, "c1-2"); !strings.Contains(got, "PersistentVolumeClaim c1-2 exists and does not belong") || reason != api.ReasonForeignObject {
		t.Errorf("refusal %q, %q", got, reason)
	}
	if _, reason := b.r.refusals.shown(shop, "c1-1"); reason != "" {
		t.Errorf("our own Pod counts as somebody else's: %q", reason)
	}
}

func TestFailedReadEndsThePass(t *testing.T) {
	b := newBench(t, aCluster())
	b.does("new", core.Action{Kind: core.CreatePod, Instance: "c1-1"})
	b.r.Secrets = broken{}
	if _, err := b.reconcile(); err == nil || len(b.seen) > 0 {
		t.Errorf("error %v, decided %d times", err, len(b.seen))
	}
	b.wrote()
}

type broken struct{}

func (broken) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "c1", errors.New("no"))
}

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("no")
}

func TestVanishedClusterIsForgotten(t *testing.T) {
	b := newBench(t)
	b.must()
	if len(b.instances.forgotten) != 1 || len(b.seen) != 0 {
		t.Errorf("forgotten %v, decided %d times", b.instances.forgotten, len(b.seen))
	}
}

func TestFreshFactsAreAskedForOnce(t *testing.T) {
	facts := &protocol.MySQL{}
	said := func(name string) *protocol.Report {
		return &protocol.Report{Instance: name, PodUID: "pod-" + name, Server: protocol.Server{State: protocol.ServerRunning}, MySQL: facts}
	}
	c := aCluster()
	b := newBench(t, c, aPod("c1-1"), aPod("c1-2"), aLease("c1-1/x"))
	b.instances.reports = map[string]*protocol.Report{"c1-1": said("c1-1"), "c1-2": said("c1-2")}
	b.instances.answers = map[string]*protocol.Report{"c1-2": said("c1-2")}
	b.say = func(s core.Snapshot) core.Decision { return core.Decision{Refresh: !s.Fresh, Status: s.Cluster.Status} }
	b.must()
	if b.instances.refreshed != 1 || len(b.seen) != 2 || b.seen[0].Fresh || !b.seen[1].Fresh {
		t.Fatalf("refreshed %d times, decided %d times", b.instances.refreshed, len(b.seen))
	}
	if s := b.last(); s.Instances[0].Report == nil || s.Instances[0].Report.MySQL != nil || s.Instances[1].Report.MySQL == nil {
		t.Errorf("of who did not answer the server's facts must go, and only those: %+v", s.Instances)
	}
	b.instances.onRefresh = func() {
		lease := aLease("c1-2/y")
		lease.ResourceVersion = ""
		there := &coordinationv1.Lease{}
		if err := b.Live.Get(t.Context(), client.ObjectKeyFromObject(lease), there); err != nil {
			t.Fatal(err)
		}
		there.Spec = lease.Spec
		if err := b.Server.Client.Update(t.Context(), there); err != nil {
			t.Fatal(err)
		}
	}
	if result := b.must(); result.RequeueAfter != soon || b.last().Fresh {
		t.Errorf("the lease was taken meanwhile: result %+v, fresh %t", result, b.last().Fresh)
	}
}
