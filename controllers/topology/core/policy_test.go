package core

import (
	"strings"
	"testing"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

func (w *world) prefer(names ...string) *world {
	w.Cluster.Spec.FailoverPolicy.PreferredPrimary = names
	return w
}

func (w *world) loseAtMost(n int64) *world {
	w.Cluster.Spec.FailoverPolicy.MaxTransactionsBehind = &n
	return w
}

func TestLossIsBounded(t *testing.T) {
	far := func() *world { return deadPrimary().held(2, "1:1-80", "").held(3, "1:1-79", "") }
	for _, tc := range []struct {
		name   string
		world  *world
		winner string
		says   string
	}{
		{"no bound: the loss is told", far(), "c1-2", "misses 20 transactions"},
		{"more than the bound: the closest is named with its gap", far().loseAtMost(10), "",
			"c1-2 misses 20 transactions that the primary was last known to have, more than maxTransactionsBehind (10); c1-3 misses 21"},
		{"and what would let it go on", far().loseAtMost(10), "", "c1-2 is the closest: to lose its 20 transactions set failoverPolicy.maxTransactionsBehind to that"},
		{"exactly the bound", far().loseAtMost(20), "c1-2", "misses 20 transactions"},
		{"nothing may be lost, and nothing is", deadPrimary().loseAtMost(0), "c1-2", "holds everything"},
		{"nothing may be lost, and one is", deadPrimary().loseAtMost(0).held(2, "1:1-99", "").held(3, "1:1-99", ""), "", "misses 1 transactions"},
		{"one is within the bound", far().loseAtMost(10).held(3, "1:1-95", ""), "c1-3", "misses 5 transactions"},
		{"what was received and not applied is not lost", far().loseAtMost(0).held(3, "1:1-60", "1:61-100"), "c1-3", "holds everything"},
		{"a gap in the middle counts as what it is", far().loseAtMost(1).held(2, "1:1-50:52-100", "").held(3, "1:1-50", ""), "c1-2", "misses 1 transactions"},
		{"holding what the record does not know makes up for nothing", far().loseAtMost(5).held(2, "1:1-80:101-200", ""), "", "misses 20 transactions"},
		{"what it had at its promotion counts where nothing was recorded", func() *world {
			w := deadPrimary().loseAtMost(0).held(2, "1:1-40", "").held(3, "1:1-40", "")
			delete(w.Cluster.Status.GTIDExecutedByInstance, "c1-1")
			return w
		}(), "", "misses 10 transactions"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.world.Snapshot)
			e := d.Status.LastElection
			if e == nil || e.Winner != tc.winner || !strings.Contains(e.Verdict, tc.says) {
				t.Fatalf("election %+v, want %q, %q", e, tc.winner, tc.says)
			}
			if (d.Status.Phase == api.PhaseBlocked) != (tc.winner == "") {
				t.Errorf("phase %s: %s", d.Status.Phase, d.Status.PhaseReason)
			}
			says(t, d, tc.says)
		})
	}
}

func TestPreferenceDecidesBetweenEqualsOnly(t *testing.T) {
	for _, tc := range []struct {
		name   string
		world  *world
		winner string
	}{
		{"equals", deadPrimary().prefer("c1-3", "c1-2"), "c1-3"},
		{"equals, the first is gone", deadPrimary().prefer("c1-9", "c1-3"), "c1-3"},
		{"nobody is preferred", deadPrimary().prefer("c1-1"), "c1-2"},
		{"another holds more", deadPrimary().prefer("c1-3").held(2, "1:1-101", ""), "c1-2"},
		{"equals, and the preferred has more to apply", deadPrimary().prefer("c1-3").held(2, "1:1-100", "").held(3, "1:1-50", "1:51-100"), "c1-3"},
		{"the preferred has diverged", deadPrimary().prefer("c1-3").held(3, "1:1-100, 3:1", ""), "c1-2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.world.Snapshot)
			if e := d.Status.LastElection; e == nil || e.Winner != tc.winner {
				t.Errorf("election %+v", e)
			}
		})
	}
}

func TestTheRoleReturnsToThePreferredInstance(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*world)
		to     string
		says   string
	}{
		{"the first that is fit", func(w *world) { w.prefer("c1-3", "c1-2") }, "c1-3", "which is preferred"},
		{"the first is not fit", func(w *world) { w.prefer("c1-3", "c1-2").crash(3) }, "c1-2", "which is preferred"},
		{"the first is not Ready", func(w *world) { w.prefer("c1-3", "c1-2"); w.i(3).Pod.Ready = false }, "c1-2", ""},
		{"the first does not exist", func(w *world) { w.prefer("c1-9", "c1-2") }, "c1-2", ""},
		{"the primary is the first that there is", func(w *world) { w.prefer("c1-9", "c1-1", "c1-2") }, "", ""},
		{"nobody is preferred", func(w *world) { w.prefer() }, "", ""},
		{"an instance is being cloned", func(w *world) {
			w.prefer("c1-2")
			w.i(3).Report.Provision, w.i(3).Report.MySQL = &protocol.Provision{Step: "cloning"}, nil
		}, "", ""},
		{"another is still to be made", func(w *world) { w.prefer("c1-2"); w.Cluster.Spec.Instances = 4; w.i(3).Pod.Ready = false }, "", ""},
		{"it is behind", func(w *world) { w.prefer("c1-2"); w.i(2).Report.MySQL.Replication.SecondsBehind = new(int64(11)) }, "", "the role is to return to c1-2, which is preferred; waiting for it to catch up"},
		{"somebody asks for another", func(w *world) { w.prefer("c1-2"); w.Cluster.Status.TargetPrimary = "c1-3" }, "c1-3", "from c1-1 to c1-3"},
		{"the primary is not writable", func(w *world) { w.prefer("c1-2"); w.i(1).Report.MySQL.ReadOnly = true }, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := sound()
			tc.change(w)
			d := Decide(w.Snapshot)
			tr := d.Status.PrimaryTransition
			switch {
			case (tr == nil) != (tc.to == ""):
				t.Errorf("transition %+v (%s)", tr, d.Status.PhaseReason)
			case tr != nil && (tr.To != tc.to || tr.Kind != api.TransitionSwitchover || tr.Deadline == nil):
				t.Errorf("transition %+v", tr)
			}
			says(t, d, tc.says)
		})
	}
}

func TestAReturnThatHadToBeEndedIsNotTriedAgainAtOnce(t *testing.T) {
	w := sound().prefer("c1-2")
	pause := firstFailbackPause
	for attempt := int32(1); attempt <= 3; attempt++ {
		w.then(Decide(w.Snapshot))
		tr := w.Cluster.Status.PrimaryTransition
		if tr == nil || tr.Cause != api.CausePreferred {
			t.Fatalf("attempt %d: transition %+v, %s", attempt, tr, w.Cluster.Status.PhaseReason)
		}
		w.i(2).Report.Role.PromotionRefused, w.i(2).Report.Role.PromotionRefusedAttempt = "it cannot", tr.Attempt
		d := Decide(w.Snapshot)
		says(t, d, "SwitchoverAborted")
		w.then(d)
		if f := w.Cluster.Status.Failback; f == nil || f.Attempts != attempt || f.Reason != "it cannot" {
			t.Fatalf("attempt %d: %+v", attempt, f)
		}
		d = Decide(w.Snapshot)
		if d.Status.PrimaryTransition != nil || d.Status.Phase != api.PhaseReady {
			t.Fatalf("attempt %d: at once again: %+v (%s)", attempt, d.Status.PrimaryTransition, d.Status.Phase)
		}
		says(t, d, "because the last try was ended: it cannot")
		w.then(d)
		w.Now = w.Now.Add(pause)
		pause *= 2
	}
	if got := failbackPause(1000); got != longestFailbackPause {
		t.Errorf("the longest pause is %s", got)
	}
	w.Cluster.Status.PrimaryTransition = nil
	w.transition(api.TransitionSwitchover, "c1-2")
	w.stepDown("1:1-100").claimed()
	if d := Decide(w.Snapshot); d.Status.Failback != nil {
		t.Errorf("remembered beyond the promotion: %+v", d.Status.Failback)
	}
}

func TestADrainedPrimaryHandsOverToThePreferredOfEquals(t *testing.T) {
	w := sound().prefer("c1-3")
	w.i(1).Pod.Terminating = true
	if tr := Decide(w.Snapshot).Status.PrimaryTransition; tr == nil || tr.To != "c1-3" || tr.Cause != api.CauseStopping {
		t.Errorf("transition %+v", tr)
	}
	w.held(3, "1:1-99", "")
	if tr := Decide(w.Snapshot).Status.PrimaryTransition; tr == nil || tr.To != "c1-2" {
		t.Errorf("transition %+v", tr)
	}
}

func TestAReturnIsLookedAtWhenItsPauseEnds(t *testing.T) {
	w := sound().prefer("c1-2")
	w.Cluster.Status.Failback = &api.FailbackStatus{Instance: "c1-2", Attempts: 1, Reason: "it cannot"}
	w.Cluster.Status.Failback.EndedAt.Time = now.Add(-firstFailbackPause + 7*time.Second)
	if d := Decide(w.Snapshot); d.Recheck != 7*time.Second {
		t.Errorf("after %s", d.Recheck)
	}
}
