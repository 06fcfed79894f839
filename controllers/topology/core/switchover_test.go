package core

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

func TestSwitchoverIsRefusedWithTheReason(t *testing.T) {
	replication := func(w *world) *protocol.Replication { return w.i(2).Report.MySQL.Replication }
	for want, change := range map[string]func(*world){
		"c1-7 cannot become the primary: there is no such instance": func(w *world) { w.Cluster.Status.TargetPrimary = "c1-7" },
		"it has no Pod":                        func(w *world) { w.lose(2) },
		"its Pod is being deleted":             func(w *world) { w.i(2).Pod.Terminating = true },
		"it has diverged":                      func(w *world) { w.held(2, "1:1-100, 2:1", "") },
		"its instance manager does not answer": func(w *world) { w.silence(2) },
		"it does not have its data yet":        func(w *world) { w.i(2).Report.Provision = &protocol.Provision{Step: "cloning"} },
		"its server is not running":            func(w *world) { w.crash(2) },
		"it is not a replica":                  func(w *world) { w.i(2).Report.MySQL.Replication = nil },
		"it replicates from c1-3":              func(w *world) { replication(w).SourceHost = "c1-3.shop.svc" },
		"its applier stopped with error 1062":  func(w *world) { replication(w).SQLErrno = 1062 },
		"its receiver stopped with error 1236": func(w *world) { replication(w).IOErrno, replication(w).IORunning = 1236, false },
		"its replication is stopped":           func(w *world) { replication(w).SQLRunning = false },
		"it has no connection":                 func(w *world) { replication(w).Connected = false },
		"it is 7200 s behind":                  func(w *world) { replication(w).SecondsBehind = new(int64(7200)) },
	} {
		t.Run(want, func(t *testing.T) {
			w := sound()
			w.Cluster.Status.TargetPrimary = "c1-2"
			change(w)
			d := Decide(w.Snapshot)
			if d.Status.PrimaryTransition != nil || d.Status.TargetPrimary != "c1-1" {
				t.Errorf("transition %+v, target %s", d.Status.PrimaryTransition, d.Status.TargetPrimary)
			}
			says(t, d, "SwitchoverRefused: ")
			says(t, d, want)
			if w.i(1).Pod.Role != api.RolePrimary {
				t.Error("the primary was touched")
			}
		})
	}
}

func TestAcceptedSwitchoverIsATransitionWithADeadline(t *testing.T) {
	w := sound()
	w.Cluster.Status.TargetPrimary = "c1-3"
	w.Cluster.Spec.MaxSwitchoverDelay = 60
	d := Decide(w.Snapshot)
	tr := d.Status.PrimaryTransition
	if tr == nil || tr.Kind != api.TransitionSwitchover || tr.From != "c1-1" || tr.To != "c1-3" || tr.Generation != 4 ||
		tr.Attempt != "attempt-new" || !tr.Deadline.Time.Equal(now.Add(time.Minute)) {
		t.Errorf("transition %+v", tr)
	}
	does(t, d, `label Pod c1-1 "" false`)
}

func TestSwitchoverThatIsAskedForWaitsForAWritablePrimary(t *testing.T) {
	w := sound()
	w.Cluster.Status.TargetPrimary = "c1-2"
	w.i(1).Report.MySQL.ReadOnly = true
	d := Decide(w.Snapshot)
	if d.Rule != "the primary is opening" || d.Status.TargetPrimary != "c1-2" || d.Status.PrimaryTransition != nil {
		t.Errorf("rule %q, target %s", d.Rule, d.Status.TargetPrimary)
	}
}

func TestDrainedPrimaryHandsOverToTheBestReplica(t *testing.T) {
	w := sound().held(2, "1:1-98", "1:99-100")
	w.i(1).Pod.Terminating = true
	d := Decide(w.Snapshot)
	if tr := d.Status.PrimaryTransition; tr == nil || tr.To != "c1-3" || tr.Kind != api.TransitionSwitchover {
		t.Errorf("transition %+v", tr)
	}
	w.lose(2).lose(3)
	d = Decide(w.Snapshot)
	says(t, d, "no replica can take over")
	if d.Recheck > time.Second {
		t.Errorf("looks again after %s", d.Recheck)
	}
}

// ends are what may come of a running switchover.
const (
	goesOn    = "goes on"
	withdrawn = "withdrawn"
	failover  = "failover"
	resumes   = "resumes"
)

func TestRunningSwitchover(t *testing.T) {
	held := Lease{Known: true, Holder: "c1-2/pod-2", Unchanged: time.Second}
	for _, tc := range []struct {
		name    string
		change  func(*world)
		want    string
		actions []string
	}{
		{"just begun", func(*world) {}, goesOn, nil},
		{"the old primary is read-only", func(w *world) { w.stepDown("1:1-100"); w.Lease = Lease{Known: true, Holder: "c1-1/pod-1"} }, goesOn, nil},
		{"the old primary is read-only and its Pod is being stopped", func(w *world) {
			w.stepDown("1:1-100")
			w.Lease = Lease{Known: true, Holder: "c1-1/pod-1"}
			w.i(1).Pod.Terminating = true
		}, goesOn, nil},
		{"handed over, and the target still receives", func(w *world) { w.stepDown("1:1-105"); w.i(1).Pod.Terminating = true }, goesOn, nil},
		{"handed over, received, then the old primary dies", func(w *world) { w.stepDown("1:1-100").crash(1) }, goesOn, nil},
		{"handed over, not all received, then the old primary dies", func(w *world) { w.stepDown("1:1-105").crash(1).Fresh = true }, failover, nil},
		{"the old primary dies before it hands over", func(w *world) { w.crash(1).Fresh = true }, failover, nil},
		{"a handoff of another attempt does not count", func(w *world) { w.stepDown("1:1-100").crash(1).free().Lease.HandoffAttempt = "attempt-0" }, failover, nil},
		{"the old primary's node is lost", func(w *world) { w.silence(1).i(1).Pod.Ready = false }, goesOn, nil},
		{"the lease came back without a handoff", func(w *world) {
			w.stepDown("1:1-100").free()
			w.Lease.Handoff, w.Lease.HandoffAttempt = nil, ""
			w.i(1).Pod.Terminating = true
		}, failover, nil},
		{"the lease came back without a handoff, and the old primary holds more", func(w *world) {
			w.held(1, "1:1-120", "").stepDown("1:1-100").free()
			w.Lease.Handoff, w.Lease.HandoffAttempt = nil, ""
		}, resumes, nil},
		{"cancelled", func(w *world) { w.Cluster.Status.TargetPrimary = "c1-1" }, withdrawn, nil},
		{"cancelled after the handoff", func(w *world) { w.stepDown("1:1-100").Cluster.Status.TargetPrimary = "c1-1" }, withdrawn, nil},
		{"cancelled when the target holds the lease", func(w *world) { w.stepDown("1:1-100").Lease = held; w.Cluster.Status.TargetPrimary = "c1-1" }, goesOn, nil},
		{"the target's server dies", func(w *world) { w.crash(2) }, withdrawn, nil},
		{"the target's server dies after the handoff", func(w *world) { w.stepDown("1:1-100").crash(2) }, withdrawn, nil},
		{"the target is gone", func(w *world) { w.lose(2) }, withdrawn, nil},
		{"the target refuses", func(w *world) {
			w.i(2).Report.Role.PromotionRefused, w.i(2).Report.Role.PromotionRefusedAttempt = "no", "attempt-1"
		}, withdrawn, nil},
		{"the deadline passes", func(w *world) { w.Now = now.Add(time.Hour) }, withdrawn, nil},
		{"the deadline passes while the target holds the lease", func(w *world) {
			w.stepDown("1:1-100").Lease = held
			w.Now = now.Add(time.Hour)
		}, goesOn, []string{"delete Pod c1-2"}},
		{"the same, and the target's Pod was made anew", func(w *world) {
			w.stepDown("1:1-100").Lease = held
			w.Now = now.Add(time.Hour)
			w.i(2).Pod.UID = "pod-2b"
		}, goesOn, nil},
		{"the same, and its lease has expired", func(w *world) {
			w.stepDown("1:1-100").Lease = held
			w.Lease.Unchanged = api.PrimaryLeaseTTL
			w.Now = now.Add(time.Hour)
		}, withdrawn, nil},
		{"a server that hangs for a moment is no reason", func(w *world) { w.i(2).Report.MySQL = nil }, goesOn, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := moving()
			tc.change(w)
			d := Decide(w.Snapshot)
			got := goesOn
			switch tr := d.Status.PrimaryTransition; {
			case tr == nil && d.Status.Phase == api.PhaseFailingOver:
				got = resumes
			case tr == nil:
				got = withdrawn
			case tr.Kind == api.TransitionFailover:
				got = failover
			}
			if got != tc.want {
				t.Fatalf("it %s, want %s: %s", got, tc.want, d.Status.PhaseReason)
			}
			if tc.want == withdrawn && d.Status.TargetPrimary != "c1-1" {
				t.Errorf("target %s", d.Status.TargetPrimary)
			}
			if tc.actions != nil {
				does(t, d, tc.actions...)
			}
			for _, a := range d.Actions {
				if a.Role == api.RolePrimary && (tc.want != withdrawn || a.Instance != "c1-1") || a.Kind == DeletePod && tc.actions == nil {
					t.Errorf("action %+v", a)
				}
			}
		})
	}
}

func TestNoLabelIsGivenBeforeTheEndOfATransitionIsStored(t *testing.T) {
	for _, tc := range []struct {
		name          string
		world         func() *world
		first, second []string
	}{
		{"cancelled, and the source was last seen writable", func() *world {
			w := moving()
			w.Cluster.Status.TargetPrimary = "c1-1"
			return w
		}, nil, []string{`label Pod c1-1 "primary" true`}},
		{"the target claimed the role and opened", func() *world { return moving().stepDown("1:1-100").claimed().opened() },
			[]string{`label Pod c1-2 "primary" true`}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.world().Snapshot)
			does(t, Decision{Actions: d.First}, tc.first...)
			does(t, Decision{Actions: d.Actions}, tc.second...)
		})
	}
}

func TestLateCancelIsForgottenWithTheClaim(t *testing.T) {
	w := moving().stepDown("1:1-100").claimed().opened()
	w.Cluster.Status.TargetPrimary = "c1-1"
	d := Decide(w.Snapshot)
	if d.Status.TargetPrimary != "c1-2" || d.Status.PrimaryTransition != nil {
		t.Errorf("target %s, transition %+v", d.Status.TargetPrimary, d.Status.PrimaryTransition)
	}
}

func TestTransitionThatNobodyClaimedDoesNotOutliveAnotherPromotion(t *testing.T) {
	w := sound()
	w.Cluster.Status.PrimaryTransition = &api.PrimaryTransition{
		Attempt: "old", Kind: api.TransitionSwitchover, From: "c1-3", To: "c1-2", Generation: 3, StartedAt: metav1.NewMicroTime(now),
	}
	if d := Decide(w.Snapshot); d.Status.PrimaryTransition != nil || len(d.Events) > 0 {
		t.Errorf("transition %+v, events %q", d.Status.PrimaryTransition, events(d))
	}
}
