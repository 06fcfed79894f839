package core

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// acknowledged makes commits wait for w replicas, and decides what goes first.
func (w *world) acknowledged(effective int32, durability api.DataDurability) *world {
	w.Cluster.Spec.MinSyncReplicas = max(effective, 1)
	w.Cluster.Spec.MySQL.SemiSync = &api.SemiSyncConfiguration{Enabled: true, DataDurability: durability}
	w.Cluster.Status.SemiSync = &api.SemiSyncStatus{Configured: effective, Effective: effective}
	return w
}

func TestAFailoverThatMayLoseAnAcknowledgedCommitGoesOnOnlyIfItMay(t *testing.T) {
	const lost = "an acknowledged commit may exist only"
	for _, tc := range []struct {
		name   string
		world  func() *world
		winner string
		says   string
	}{
		{"everybody answers", func() *world { return deadPrimary().acknowledged(1, api.DurabilityRequired) }, "c1-2", "holds everything"},
		{"one acknowledges, one is silent, required", func() *world { return deadPrimary().acknowledged(1, api.DurabilityRequired).silence(3) }, "",
			lost + " on instances that do not answer (c1-3): one of them must answer before c1-2 is promoted, or mysql.semiSync.dataDurability be set to preferred"},
		{"one acknowledges, one is silent, preferred", func() *world { return deadPrimary().acknowledged(1, api.DurabilityPreferred).silence(3) }, "c1-2", lost + " there"},
		{"two acknowledge, one is silent, required", func() *world { return deadPrimary().acknowledged(2, api.DurabilityRequired).silence(3) }, "c1-2", "not asked, because they do not answer: c1-3"},
		{"semi-sync is off, required", func() *world {
			w := deadPrimary().acknowledged(1, api.DurabilityRequired).silence(3)
			w.Cluster.Spec.MySQL.SemiSync.Enabled, w.Cluster.Status.SemiSync = false, nil
			return w
		}, "c1-2", "c1-3"},
		{"nobody has seen yet how many the primary waits for", func() *world {
			w := deadPrimary().acknowledged(2, api.DurabilityRequired).silence(3)
			w.Cluster.Status.SemiSync = nil
			return w
		}, "", lost},
		{"fewer acknowledge than are configured", func() *world {
			w := deadPrimary().acknowledged(2, api.DurabilityRequired).silence(3)
			w.Cluster.Status.SemiSync.Effective = 1
			return w
		}, "", lost},
		{"it was switched off a moment ago, and the primary still waited", func() *world {
			w := deadPrimary().acknowledged(1, api.DurabilityRequired).silence(3)
			w.Cluster.Spec.MySQL.SemiSync.Enabled = false
			return w
		}, "", lost},
		{"who never had data acknowledged nothing", func() *world {
			w := deadPrimary().acknowledged(1, api.DurabilityRequired).silence(3)
			delete(w.Cluster.Status.GTIDExecutedByInstance, "c1-3")
			return w
		}, "c1-2", "holds everything"},
		{"who lost its data and is made anew may have acknowledged", func() *world {
			w := deadPrimary().acknowledged(1, api.DurabilityRequired)
			w.i(3).Report.Provision, w.i(3).Report.MySQL = &protocol.Provision{Step: "cloning"}, nil
			return w
		}, "", lost},
		{"a server that hangs is not read", func() *world {
			w := deadPrimary().acknowledged(1, api.DurabilityRequired)
			w.i(3).Report.MySQL = nil
			return w
		}, "", lost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.world().Snapshot)
			e := d.Status.LastElection
			if e == nil || e.Winner != tc.winner || !strings.Contains(e.Verdict, tc.says) {
				t.Fatalf("election %+v, want %q, %q", e, tc.winner, tc.says)
			}
			if tr := d.Status.PrimaryTransition; (tr == nil) != (tc.winner == "") {
				t.Errorf("transition %+v", tr)
			}
			says(t, d, tc.says)
		})
	}
}

// When all were ended at once they come back one after the other. Who is first does not take the role while another, that may
// hold what was acknowledged, is about to answer.
func TestReplicasThatAreBeingStartedAreWaitedForForSomeTime(t *testing.T) {
	starting := func(w *world) {
		w.i(3).Report.MySQL, w.i(3).Report.Server = nil, protocol.Server{State: protocol.ServerStarting}
	}
	for _, tc := range []struct {
		name   string
		change func(*world)
		after  time.Duration
		waits  bool
	}{
		{"its server is starting", starting, 10 * time.Second, true},
		{"its manager has just begun", func(w *world) {
			w.i(3).Report.MySQL, w.i(3).Report.Server = nil, protocol.Server{State: protocol.ServerProvisioning}
			w.i(3).Report.Provision = &protocol.Provision{Step: protocol.StepWaiting}
		}, 10 * time.Second, true},
		{"its container is being started", func(w *world) { w.silence(3).i(3).Pod.Running = false }, 10 * time.Second, true},
		{"its manager does not answer yet", func(w *world) { w.silence(3).i(3).Pod.Ready = false }, 10 * time.Second, true},
		{"for too long", starting, witnessBound, false},
		{"it cannot start", func(w *world) {
			w.silence(3).i(3).Pod.Running, w.i(3).Pod.Trouble = false, "its image cannot be had"
		}, 10 * time.Second, false},
		{"it is cloned anew", func(w *world) {
			w.i(3).Report.MySQL, w.i(3).Report.Server = nil, protocol.Server{State: protocol.ServerProvisioning}
			w.i(3).Report.Provision = &protocol.Provision{Step: protocol.StepCloning, Attempts: 1}
		}, 10 * time.Second, false},
		{"its Pod is being ended", func(w *world) { starting(w); w.i(3).Pod.Terminating = true }, 10 * time.Second, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := deadPrimary().acknowledged(1, api.DurabilityPreferred)
			since := metav1.NewMicroTime(w.Now.Add(-tc.after))
			w.Cluster.Status.PrimaryFailingSince = &since
			tc.change(w)
			d := Decide(w.Snapshot)
			e := d.Status.LastElection
			if e == nil || (e.Winner == "") != tc.waits || (d.Status.PrimaryTransition == nil) != tc.waits {
				t.Fatalf("election %+v, transition %+v", e, d.Status.PrimaryTransition)
			}
			if tc.waits && (!strings.Contains(e.Verdict, "c1-3") || d.Recheck == 0) {
				t.Errorf("verdict %q, looked at again after %s", e.Verdict, d.Recheck)
			}
		})
	}
}

func TestThePrimaryThatCameBackNeedsNoWitnesses(t *testing.T) {
	// A switchover to c1-2, which is lost with the lease in its hands; c1-1 is read-only.
	lost := func() *world {
		w := sound().acknowledged(1, api.DurabilityRequired).silence(2)
		w.transition(api.TransitionFailover, "c1-2")
		w.i(1).Report.MySQL.ReadOnly, w.i(1).Report.MySQL.SuperReadOnly = true, true
		w.i(2).Pod.Ready = false
		w.Lease.Holder = "c1-2/pod-2"
		return w.free()
	}
	for _, tc := range []struct {
		name   string
		change func(*world)
		winner string
		says   string
	}{
		{"it holds what all hold", func(*world) {}, "c1-1", "c1-1 came back and resumes"},
		{"it holds more", func(w *world) { w.held(1, "1:1-120", "") }, "c1-1", "c1-1 came back and resumes"},
		{"another is preferred", func(w *world) { w.prefer("c1-3") }, "c1-1", "c1-1 came back and resumes"},
		{"it lost what it had", func(w *world) { w.held(1, "1:1-99", "").held(3, "1:1-99", "") }, "", "instances that do not answer (c1-2"},
		{"another holds more of its own", func(w *world) { w.held(3, "1:1-101", "") }, "", "instances that do not answer (c1-2"},
		{"its Pod is being stopped", func(w *world) { w.i(1).Pod.Terminating = true }, "", "instances that do not answer (c1-2"},
		{"it has failed", func(w *world) { w.crash(1) }, "", "instances that do not answer (c1-2"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := lost()
			tc.change(w)
			d := Decide(w.Snapshot)
			e := d.Status.LastElection
			if e == nil || e.Winner != tc.winner {
				t.Fatalf("election %+v, want %q", e, tc.winner)
			}
			if tc.winner != "" && (d.Status.PrimaryTransition != nil || d.Status.TargetPrimary != tc.winner) {
				t.Errorf("transition %+v, target %s", d.Status.PrimaryTransition, d.Status.TargetPrimary)
			}
			says(t, d, tc.says)
		})
	}
}

func TestAFailoverHeldBackForAWitnessIsToldOnceAndGoesOnWhenItAnswers(t *testing.T) {
	w := deadPrimary().acknowledged(1, api.DurabilityRequired)
	third := w.i(3).Report
	d := Decide(w.silence(3).Snapshot)
	says(t, d, "FailoverBlocked: the primary c1-1 has failed")
	if c := condition(d, api.ConditionFailoverBlocked); c.Reason != api.ReasonWitnessesMissing || c.Status != "True" {
		t.Errorf("condition %+v", c)
	}
	if d.Recheck == 0 {
		t.Error("it is not looked at again")
	}
	again := Decide(w.then(d).Snapshot)
	if len(again.Events) > 0 {
		t.Errorf("told again: %q", events(again))
	}
	if got := again.Status.LastElection; !got.At.Equal(&d.Status.LastElection.At) || got.Candidates[0].Eligible || got.Candidates[0].Reason != "waits for c1-3" {
		t.Errorf("election %+v", got)
	}
	// It holds more, and so is the one to be promoted.
	w.i(3).Report = third
	d = Decide(w.held(3, "1:1-101", "").Snapshot)
	if tr := d.Status.PrimaryTransition; tr == nil || tr.To != "c1-3" {
		t.Errorf("transition %+v", tr)
	}
}
