package core

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// These are situations that systems of this kind got wrong, followed over several passes.

func TestPrimaryThatComesBackDuringItsFailoverTakesNothingBackAndOneFailoverIsCounted(t *testing.T) {
	w := sound().silence(1).free()
	w.i(1).Pod.Ready = false
	d := Decide(w.Snapshot)
	if tr := d.Status.PrimaryTransition; tr == nil || tr.To != "c1-2" {
		t.Fatalf("transition %+v: %s", tr, d.Status.PhaseReason)
	}
	w.then(d)
	// Its node answers again, and it has not read the transition yet: it still takes writes.
	back := sound()
	*w.i(1) = *back.i(1)
	w.Lease = Lease{Known: true, Holder: "c1-1/pod-1", Unchanged: time.Second}
	promotions := 0
	for range 3 {
		d = Decide(w.Snapshot)
		if tr := d.Status.PrimaryTransition; tr == nil || tr.To != "c1-2" || tr.Attempt != "attempt-new" || d.Status.TargetPrimary != "c1-2" {
			t.Fatalf("transition %+v, target %s", tr, d.Status.TargetPrimary)
		}
		if slices.ContainsFunc(actions(d), func(a string) bool { return strings.Contains(a, `"primary" true`) }) {
			t.Errorf("a label of the primary is given: %q", actions(d))
		}
		w.then(d)
	}
	for _, next := range []func() *world{w.claimed, w.opened, func() *world { return w }} {
		next()
		if d = Decide(w.Snapshot); d.Promoted != nil {
			promotions++
		}
		w.then(d)
	}
	if st := &w.Cluster.Status; promotions != 1 || st.LastFailoverGeneration != 4 || st.CurrentPrimary != "c1-2" || st.PrimaryTransition != nil {
		t.Errorf("%d promotions, last in generation %d, primary %s", promotions, st.LastFailoverGeneration, st.CurrentPrimary)
	}
}

func TestSwitchoverThatRanOutOfTimeSuppressesNoFailoverAfterIt(t *testing.T) {
	w := moving()
	w.Now = now.Add(time.Hour)
	w.then(Decide(w.Snapshot))
	if w.Cluster.Status.PrimaryTransition != nil {
		t.Fatal("the switchover was not ended")
	}
	w.Now = w.Now.Add(30 * time.Second)
	w.then(Decide(w.Snapshot)) // c1-1 is writable again
	w.Now = w.Now.Add(time.Second)
	w.crash(1).free()
	d := Decide(w.Snapshot)
	if tr := d.Status.PrimaryTransition; tr == nil || tr.Kind != api.TransitionFailover || !tr.StartedAt.Equal(&metav1.MicroTime{Time: w.Now}) {
		t.Errorf("transition %+v: %s", tr, d.Status.PhaseReason)
	}
}

func TestAnUnreachableBystanderStopsNoSwitchoverAndNoCancelling(t *testing.T) {
	w := moving().silence(3)
	w.i(3).Pod.Ready = false
	d := Decide(w.Snapshot)
	if d.Status.PrimaryTransition == nil || d.Rule != "a switchover is running" {
		t.Fatalf("%s: %s", d.Rule, d.Status.PhaseReason)
	}
	// An operator that has just started goes on from the status alone.
	again := Decide(w.then(d).Snapshot)
	if tr := again.Status.PrimaryTransition; tr == nil || tr.Attempt != "attempt-1" {
		t.Errorf("after a restart: %+v", tr)
	}
	w.Cluster.Status.TargetPrimary = "c1-1"
	if d = Decide(w.Snapshot); d.Status.PrimaryTransition != nil || d.Status.TargetPrimary != "c1-1" {
		t.Errorf("cancelled: %+v", d.Status.PrimaryTransition)
	}
	w.Cluster.Status.PrimaryTransition, w.Cluster.Status.TargetPrimary = nil, "c1-2"
	if d = Decide(w.Snapshot); d.Status.PrimaryTransition == nil || d.Status.PrimaryTransition.To != "c1-2" {
		t.Errorf("asked for while c1-3 is away: %s", d.Status.PhaseReason)
	}
}

func TestTargetOfASwitchoverNeedsNoCompanionField(t *testing.T) {
	w := sound()
	w.Cluster.Status.TargetPrimary, w.Cluster.Status.TargetPrimaryTimestamp = "c1-2", nil
	d := Decide(w.Snapshot)
	if at := d.Status.TargetPrimaryTimestamp; d.Status.PrimaryTransition == nil || at == nil || !at.Time.Equal(now) {
		t.Errorf("transition %+v, asked for at %v", d.Status.PrimaryTransition, at)
	}
}

func TestPromotionOfAnInstanceThatIsBeingRemovedStandsAndTheRoleMovesOn(t *testing.T) {
	w := moving().stepDown("1:1-100").claimed().opened()
	for _, n := range []int{1, 3} {
		m := w.i(n).Report.MySQL
		m.ReadOnly, m.SuperReadOnly = true, true
		following := *sound().i(2).Report.MySQL.Replication
		following.SourceHost = w.Cluster.InstanceHost("c1-2")
		m.Replication = &following
	}
	w.i(2).Pod.Terminating = true
	w.Cluster.Spec.Instances = 2
	d := Decide(w.Snapshot)
	if st := &d.Status; st.CurrentPrimary != "c1-2" || st.CurrentPrimaryGeneration != 4 || d.Promoted == nil {
		t.Errorf("primary %s in generation %d", st.CurrentPrimary, st.CurrentPrimaryGeneration)
	}
	if tr := d.Status.PrimaryTransition; tr == nil || tr.From != "c1-2" || tr.Generation != 5 || tr.Cause != api.CauseStopping || tr.Kind != api.TransitionSwitchover {
		t.Errorf("transition %+v: %s", tr, d.Status.PhaseReason)
	}
	if !slices.Contains(d.Status.InstanceNames, "c1-2") {
		t.Errorf("members %v", d.Status.InstanceNames)
	}
}

// c1-1 crashed with c1-1's 101 to 103, which nobody else received, before c1-2 was promoted. It comes back in the moment
// in which c1-2 dies: there is no primary to compare with.
func TestDeadBranchOfAFormerPrimaryIsFoundWithoutALivePrimary(t *testing.T) {
	for name, held := range map[string]struct{ executed, received string }{"executed": {"1:1-103", ""}, "received and not applied": {"1:1-100", "1:101-103"}} {
		w := moving().stepDown("1:1-100").claimed().opened().held(3, "1:1-100, 2:1-20", "")
		w.held(2, "1:1-100, 2:1-20", "")
		w.then(Decide(w.Snapshot))
		w.Now = w.Now.Add(recordEvery)
		w.then(Decide(w.Snapshot))
		following := *sound().i(2).Report.MySQL.Replication
		w.i(1).Report.MySQL.Replication = &following
		w.held(1, held.executed, held.received).crash(2).free()
		d := Decide(w.Snapshot)
		if tr := d.Status.PrimaryTransition; tr == nil || tr.To != "c1-3" || !slices.Equal(d.Status.DivergedInstances, []string{"c1-1"}) {
			t.Errorf("%s: transition %+v, diverged %v: %s", name, tr, d.Status.DivergedInstances, d.Status.PhaseReason)
		}
	}
}

func TestLivePrimaryIsNeverJudgedByWhatOthersHold(t *testing.T) {
	// Its report is older than those of the others, and c1-3 comes back with transactions of its own.
	w := sound().held(1, "1:1-90", "").held(2, "1:1-108", "").held(3, "1:1-100, 3:1-4", "")
	w.i(1).Age = 2 * time.Second
	d := Decide(w.Snapshot)
	if !slices.Equal(d.Status.DivergedInstances, []string{"c1-3"}) || d.Status.PrimaryFailingSince != nil {
		t.Errorf("diverged %v, failing since %v", d.Status.DivergedInstances, d.Status.PrimaryFailingSince)
	}
	for _, a := range actions(d) {
		if strings.Contains(a, "c1-1") {
			t.Errorf("the primary is touched: %q", a)
		}
	}
}

func TestClusterThatWasEstablishedIsDegradedWithTheNameOfWhatItLacks(t *testing.T) {
	w := sound().lose(3)
	for range 3 {
		d := Decide(w.Snapshot)
		if d.Status.Phase != api.PhaseDegraded || !strings.Contains(d.Status.PhaseReason, "c1-3") || d.Status.EstablishedAt == nil {
			t.Errorf("%s: %s", d.Status.Phase, d.Status.PhaseReason)
		}
		w.then(d)
	}
}

func TestBlockedFailoverIsNotOverwrittenByOtherTroubles(t *testing.T) {
	w := deadPrimary().held(2, "1:1-99, 2:1", "").held(3, "1:1-99, 3:1", "")
	w.i(2).Pod.Trouble, w.i(2).Pod.TroubleReason = "no image", api.ReasonImagePull
	w.Instances[0].Pod = nil
	d := Decide(w.Snapshot)
	if d.Status.Phase != api.PhaseBlocked || condition(d, api.ConditionFailoverBlocked).Reason != api.ReasonNoSafeCandidate || condition(d, api.ConditionReady).Reason != api.ReasonNoSafeCandidate {
		t.Errorf("%s: %s", d.Status.Phase, d.Status.PhaseReason)
	}
	if !slices.Contains(actions(d), "create Pod c1-1") {
		t.Errorf("actions %q", actions(d))
	}
}

// A server that crash-loops changes its report all the time. The status is written when there is something new to say,
// and each write is work for the API server and for everybody who watches.
func TestCrashLoopOfOneInstanceIsWrittenOnceAndNotInEveryPass(t *testing.T) {
	w := sound()
	var writes []string
	for n := range 40 {
		i := w.i(3)
		i.Pod.Ready = false
		i.Report.MySQL = nil
		i.Report.Server = protocol.Server{State: protocol.ServerDown, Since: w.Now, Restarts: n + 1, LastExit: "exit status 1", LastError: "Found 4 prepared transactions"}
		if n%2 == 1 {
			i.Report.Server.State = protocol.ServerStarting
		}
		d := Decide(w.Snapshot)
		for _, c := range changes(&w.Cluster.Status, &d.Status) {
			writes = append(writes, c.Field)
		}
		if d.Status.PrimaryFailingSince != nil || d.Rule != "the primary is healthy" || len(d.Actions) > 1 {
			t.Fatalf("pass %d: rule %s, %q", n, d.Rule, actions(d))
		}
		if n == 1 {
			writes = nil // what was new has been said
		}
		w.then(d)
		w.Now = w.Now.Add(2 * time.Second)
	}
	if len(writes) > 0 {
		t.Errorf("written in 38 passes in which nothing was new: %q", writes)
	}
	says(t, Decide(w.Snapshot), "Found 4 prepared transactions")
}
