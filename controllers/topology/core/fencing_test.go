package core

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// fence takes instances out of service, as the fencing reconciler writes it.
func (w *world) fence(ordinals ...int32) *world {
	for _, n := range ordinals {
		w.Cluster.Status.FencedInstances = append(w.Cluster.Status.FencedInstances, w.Cluster.InstanceName(n))
	}
	return w
}

// halt stops the server of a fenced instance, as its manager does: the primary has given its lease back by then.
func (w *world) halt(n int) *world {
	i := w.i(n)
	i.Report.Server, i.Report.MySQL = protocol.Server{State: protocol.ServerFenced}, nil
	i.Pod.Ready, i.Report.Lease.Held = false, false
	if w.Lease.HeldBy(i.Name) {
		handoff := set("1:1-100")
		w.Lease = Lease{Known: true, Handoff: &handoff}
	}
	w.cutOff(i.Name)
	return w
}

func TestAFencedReplicaLeavesEveryServiceAtOnce(t *testing.T) {
	w := sound().fence(2)
	d := Decide(w.Snapshot)
	does(t, d, `label Pod c1-2 "replica" false`)
	w.then(d).halt(2)
	d = Decide(w.Snapshot)
	does(t, d)
	says(t, d, "Degraded: c1-2 is fenced")
	if c := meta.FindStatusCondition(d.Status.Conditions, api.ConditionReady); c.Reason != api.ReasonFenced {
		t.Errorf("the reason is %s", c.Reason)
	}
	if slices.Contains(d.Status.FailedInstances, "c1-2") {
		t.Error("what a person has stopped has not failed")
	}
}

func TestAFencedInstanceThatLostItsPodGetsAnother(t *testing.T) {
	w := sound().fence(2).lose(2)
	does(t, Decide(w.Snapshot), "create Pod c1-2")
}

func TestAFencedPrimaryIsReplacedOnceItsServerHasStoppedAndKeepsItsPod(t *testing.T) {
	w := sound().fence(1)
	d := Decide(w.Snapshot)
	does(t, d, `label Pod c1-1 "" false`)
	says(t, d, "the primary c1-1: it is fenced, and its server is about to stop")
	if d.Status.PrimaryTransition != nil || d.Recheck > api.PrimaryLeaseTTL {
		t.Errorf("transition %+v, looks again after %s", d.Status.PrimaryTransition, d.Recheck)
	}

	w.then(d).halt(1)
	w.Fresh = true
	d = Decide(w.Snapshot)
	does(t, d)
	tr := d.Status.PrimaryTransition
	if tr == nil || tr.Kind != api.TransitionFailover || tr.Cause != api.CauseFenced || tr.To != "c1-2" {
		t.Fatalf("transition %+v", tr)
	}
	if counts(tr) {
		t.Error("the brake counts what a person asked for")
	}
}

func TestAFencedPrimaryIsReplacedAfterFailoverDelay(t *testing.T) {
	w := sound().fence(1).halt(1)
	w.Fresh, w.Cluster.Spec.FailoverDelay = true, 30
	d := Decide(w.Snapshot)
	if d.Status.PrimaryTransition != nil || d.Recheck > 30*time.Second {
		t.Fatalf("transition %+v, recheck %s", d.Status.PrimaryTransition, d.Recheck)
	}
	w.then(d)
	w.Now = w.Now.Add(30 * time.Second)
	if d := Decide(w.Snapshot); d.Status.PrimaryTransition == nil {
		t.Errorf("nobody is promoted: %s", d.Status.PhaseReason)
	}
}

// Its manager may be kept from stopping it. Then the lease is what everybody waits for, and that is said.
func TestAFencedPrimaryWhoseServerDoesNotStopHasFailed(t *testing.T) {
	w := sound().fence(1)
	w.then(Decide(w.Snapshot))
	w.Now = w.Now.Add(api.PrimaryLeaseTTL)
	d := Decide(w.Snapshot)
	does(t, d)
	says(t, d, "the primary c1-1 has failed (it is fenced, and its server has not stopped for 15 s); waiting until its lease is released or expired")
	if tr := Decide(w.free().Snapshot).Status.PrimaryTransition; tr == nil || tr.Cause != api.CauseFenced {
		t.Errorf("transition %+v", tr)
	}
}

func TestTheBrakeDoesNotHoldBackTheFailoverOfAFencedPrimary(t *testing.T) {
	braked := deadPrimary().braked(10*time.Minute, 0).remember(time.Minute, 3)
	if d := Decide(braked.Snapshot); d.Status.PrimaryTransition != nil {
		t.Fatal("the brake holds nothing back here")
	}
	if d := Decide(braked.fence(1).halt(1).Snapshot); d.Status.PrimaryTransition == nil {
		t.Errorf("nobody is promoted: %s", d.Status.PhaseReason)
	}
}

// One failover of a fenced primary fails; the next of it is still what a person asked for. One that began for another
// reason stays the operator's own.
func TestAFailoverUnderWayKeepsItsCause(t *testing.T) {
	for _, was := range []api.TransitionCause{api.CauseFenced, api.CauseFailed} {
		w := sound().fence(1).halt(1).free()
		w.transition(api.TransitionFailover, "c1-2")
		w.Cluster.Status.PrimaryTransition.Cause = was
		w.lose(2)
		d := Decide(w.Snapshot)
		if tr := d.Status.PrimaryTransition; tr.To != "c1-3" || tr.Cause != was {
			t.Errorf("after %s: %+v", was, tr)
		}
	}
}

func TestTheOnlyInstanceThatIsFencedSaysSo(t *testing.T) {
	w := sound().fence(1).halt(1)
	w.Instances = w.Instances[:1]
	w.Cluster.Status.InstanceNames, w.Cluster.Spec.Instances = []string{"c1-1"}, 1
	d := Decide(w.Snapshot)
	says(t, d, "Degraded: the primary c1-1 is fenced, and there is no replica that could take over")
	does(t, d, `label Pod c1-1 "" false`)
}

// Its manager gives the lease back by itself; the Pod is what a person wants to look at.
func TestThePodOfAFencedInstanceIsNeverDeletedToEndAWait(t *testing.T) {
	hanging := sound().fence(1)
	hanging.i(1).Report.MySQL = nil
	hanging.Cluster.Status.PrimaryFailingSince = new(metav1.NewMicroTime(now.Add(-time.Hour)))

	silent := sound().fence(1).silence(1).free()
	silent.i(1).Pod.Ready = false

	target := moving().fence(2)
	target.Lease = Lease{Known: true, Holder: "c1-2/pod-2", Unchanged: time.Second}

	for name, w := range map[string]*world{"a primary that hangs": hanging, "a primary that is silent": silent, "a target that holds the lease": target} {
		if d := Decide(w.Snapshot); slices.ContainsFunc(actions(d), func(a string) bool { return a == "delete Pod c1-1" || a == "delete Pod c1-2" }) {
			t.Errorf("%s: %q", name, actions(d))
		}
	}
}

func TestAFencedInstanceIsNoCandidate(t *testing.T) {
	w := deadPrimary().fence(2)
	d := Decide(w.Snapshot)
	if tr := d.Status.PrimaryTransition; tr == nil || tr.To != "c1-3" {
		t.Errorf("transition %+v", tr)
	}
	if c := d.Status.LastElection.Candidates[0]; c.Instance != "c1-2" || c.Eligible || c.Reason != "is fenced" {
		t.Errorf("candidate %+v", c)
	}

	w = sound().fence(2)
	w.Cluster.Status.TargetPrimary = "c1-2"
	says(t, Decide(w.Snapshot), "SwitchoverRefused: c1-2 cannot become the primary: it is fenced")
}

func TestASwitchoverToAnInstanceThatIsFencedMeanwhileEnds(t *testing.T) {
	d := Decide(moving().fence(2).Snapshot)
	says(t, d, "SwitchoverAborted: the switchover from c1-1 to c1-2 was ended: it is fenced")
	if d.Status.PrimaryTransition != nil {
		t.Errorf("transition %+v", d.Status.PrimaryTransition)
	}
}

// What was acknowledged may be with a replica that a person has stopped.
func TestAFencedReplicaIsAWitnessThatIsMissing(t *testing.T) {
	w := deadPrimary().acknowledged(1, api.DurabilityRequired).fence(2).halt(2)
	d := Decide(w.Snapshot)
	if d.Status.PrimaryTransition != nil {
		t.Fatalf("transition %+v", d.Status.PrimaryTransition)
	}
	says(t, d, "instances that do not answer (c1-2 (fenced))")
}
