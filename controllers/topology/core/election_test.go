package core

import (
	"strings"
	"testing"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

func TestElection(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*world)
		winner string
		says   string
	}{
		{"equals: the lowest ordinal", func(*world) {}, "c1-2", "holds everything"},
		{"who holds more wins", func(w *world) { w.held(3, "1:1-101", "") }, "c1-3", "holds everything"},
		{"what was received counts as held", func(w *world) { w.held(2, "1:1-100", "").held(3, "1:1-90", "1:91-102") }, "c1-3", ""},
		{"between equals who has less to apply", func(w *world) { w.held(2, "1:1-90", "1:91-102").held(3, "1:1-102", "") }, "c1-3", ""},
		{"the largest set is found wherever it stands", func(w *world) { w.held(2, "1:1-99", "").held(3, "1:1-100", "") }, "c1-3", ""},
		{"neither holds all", func(w *world) { w.held(2, "1:1-99", "").held(3, "1:1-98:100", "") }, "", "each hold transactions that the other does not"},
		{"the loss is counted", func(w *world) { w.held(2, "1:1-96", "").held(3, "1:1-95", "") }, "c1-2", "misses 4 transactions"},
		{"more than the record is no error", func(w *world) { w.held(2, "1:1-500", "") }, "c1-2", ""},
		{"who does not answer is named", func(w *world) { w.silence(3) }, "c1-2", "not asked, because they do not answer: c1-3"},
		{"an acknowledged commit may be with who does not answer", func(w *world) {
			w.silence(3)
			w.Cluster.Status.SemiSync = &api.SemiSyncStatus{Configured: 1, Effective: 1}
		}, "c1-2", "an acknowledged commit may exist only there"},
		{"errant transactions", func(w *world) { w.held(2, "1:1-100, 2:1-3", "") }, "c1-3", "holds everything"},
		{"only errant candidates", func(w *world) { w.held(2, "1:1-100, 2:1", "").held(3, "1:1-100, 3:1", "") }, "", "that the primary did not have"},
		{"a mark persists", func(w *world) {
			w.Cluster.Status.DivergedInstances = []string{"c1-2"}
			w.Cluster.Status.Divergence = []api.Divergence{{Instance: "c1-2", GTIDSet: set("2:1").String(), Count: 1}}
		}, "c1-3", ""},
		{"a broken applier", func(w *world) { w.i(2).Report.MySQL.Replication.SQLErrno = 1062 }, "c1-3", ""},
		{"a broken applier that holds more", func(w *world) { w.held(2, "1:1-90", "1:91-105").i(2).Report.MySQL.Replication.SQLErrno = 1062 }, "", "cannot be promoted"},
		{"a lost connection does not count", func(w *world) {
			r := w.i(2).Report.MySQL.Replication
			r.IOErrno, r.IORunning, r.SecondsBehind = 2003, false, nil
			w.i(2).Pod.Ready = false
		}, "c1-2", ""},
		{"no data yet", func(w *world) { w.i(2).Report.Provision = &protocol.Provision{Step: "cloning"} }, "c1-3", ""},
		{"a Pod that is being stopped", func(w *world) { w.i(2).Pod.Terminating = true }, "c1-3", ""},
		{"a server that is not read", func(w *world) { w.i(2).Report.MySQL = nil }, "c1-3", "do not answer: c1-2"},
		{"who was removed", func(w *world) { w.Cluster.Status.InstanceNames = []string{"c1-1", "c1-3"} }, "c1-3", ""},
		{"who was made after the primary was last heard", func(w *world) {
			w.Cluster.Status.PrimaryKnows = []string{"c1-1", "c1-3"}
			w.Lease.Holder, w.Lease.Unchanged = "c1-1/lost", api.PrimaryLeaseTTL
		}, "c1-3", "holds everything"},
		{"unless the lease was given back", func(w *world) { w.Cluster.Status.PrimaryKnows = []string{"c1-1", "c1-3"} }, "c1-2", "holds everything"},
		{"nobody answers", func(w *world) { w.silence(2).silence(3) }, "", "c1-2 does not answer; c1-3 does not answer"},
		{"the record cannot be read", func(w *world) { w.Cluster.Status.PromotionGTIDExecuted = "nonsense" }, "", "promotionGTIDExecuted cannot be read"},
		{"the primary's own transactions are not known", func(w *world) { w.Cluster.Status.CurrentPrimaryServerUUID = "" }, "", "currentPrimaryServerUUID is not recorded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := deadPrimary()
			tc.change(w)
			d := Decide(w.Snapshot)
			e := d.Status.LastElection
			if e == nil || e.Winner != tc.winner || !strings.Contains(e.Verdict, tc.says) {
				t.Fatalf("election %+v, want %q, %q", e, tc.winner, tc.says)
			}
			if blocked := d.Status.Phase == api.PhaseBlocked; blocked != (tc.winner == "") {
				t.Errorf("phase %s: %s", d.Status.Phase, d.Status.PhaseReason)
			}
			if tr := d.Status.PrimaryTransition; tc.winner != "" && (tr == nil || tr.To != tc.winner || tr.Generation != 4 || tr.Kind != api.TransitionFailover || tr.Attempt != "attempt-new") {
				t.Errorf("transition %+v", tr)
			}
		})
	}
}

func TestErrantCandidateIsMarkedSoThatTheWinnerDoesNotWaitForIt(t *testing.T) {
	d := Decide(deadPrimary().held(2, "1:1-100, 2:1-3", "").Snapshot)
	if got := d.Status.Divergence; len(got) != 1 || got[0].Instance != "c1-2" || got[0].Count != 3 || got[0].GTIDSet != set("2:1-3").String() {
		t.Errorf("divergence %+v", got)
	}
}

func TestFailedPrimaryThatStillAnswersAndHoldsMoreIsNotLeftBehind(t *testing.T) {
	w := sound().held(1, "1:1-110", "").free()
	w.i(1).Report.MySQL.ReadOnly, w.i(1).Report.MySQL.SuperReadOnly = true, true
	since(w, time.Minute)
	if d := Decide(w.Snapshot); d.Status.PrimaryTransition != nil || d.Status.Phase != api.PhaseBlocked {
		t.Errorf("transition %+v, %s", d.Status.PrimaryTransition, d.Status.PhaseReason)
	}
	w.held(2, "1:1-110", "")
	if d := Decide(w.Snapshot); d.Status.PrimaryTransition == nil || d.Status.PrimaryTransition.To != "c1-2" {
		t.Errorf("transition %+v, %s", d.Status.PrimaryTransition, d.Status.PhaseReason)
	}
}

func TestFailoverWaitsForWhatItMust(t *testing.T) {
	for _, tc := range []struct {
		name    string
		world   func() *world
		says    string
		recheck time.Duration
		refresh bool
	}{
		{"the delay", func() *world { w := deadPrimary(); w.Cluster.Spec.FailoverDelay = 30; return w }, "after failoverDelay (30 s)", 30 * time.Second, false},
		{"what is left of the delay, counted from the status", func() *world {
			w := deadPrimary()
			w.Cluster.Spec.FailoverDelay = 30
			since(w, 20*time.Second)
			return w
		}, "after failoverDelay (30 s)", 10 * time.Second, false},
		{"the lease", func() *world { return sound().lose(1) }, "until its lease is released or expired", 13 * time.Second, false},
		{"a lease that is not there", func() *world { w := sound().lose(1); w.Lease = Lease{}; return w }, "until its lease is released or expired", api.PrimaryLeaseTTL, false},
		{"fresh facts", func() *world { w := deadPrimary(); w.Fresh = false; return w }, "", 0, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.world().Snapshot)
			if d.Refresh != tc.refresh || d.Status.PrimaryTransition != nil || d.Recheck != tc.recheck {
				t.Errorf("refresh %t, transition %+v, recheck %s", d.Refresh, d.Status.PrimaryTransition, d.Recheck)
			}
			says(t, d, tc.says)
		})
	}
}

func TestBlockedFailoverStillMakesThePrimarysPodAgain(t *testing.T) {
	w := sound().lose(1).silence(2).silence(3).free()
	d := Decide(w.Snapshot)
	if d.Status.Phase != api.PhaseBlocked {
		t.Errorf("phase %s", d.Status.Phase)
	}
	does(t, d, "create Pod c1-1")
	says(t, d, "FailoverBlocked")
	if again := Decide(w.then(d).Snapshot); len(events(again)) > 0 {
		t.Errorf("told again: %q", events(again))
	}
}

func TestFormerPrimaryThatDoesNotAnswerIsDeletedAndItsLabelTakenFirst(t *testing.T) {
	w := sound().silence(1).free()
	w.i(1).Pod.Ready = false
	d := Decide(w.Snapshot)
	does(t, d, `label Pod c1-1 "" false`, "delete Pod c1-1")
	if d.Actions[1].PodUID != "pod-1" {
		t.Errorf("Pod %q", d.Actions[1].PodUID)
	}
}

func TestRunningFailover(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*world)
		to     string
		says   string
	}{
		{"the target is at it", func(*world) {}, "c1-2", "is being promoted"},
		{"the target's server died before it took the lease", func(w *world) { w.crash(2) }, "c1-3", "could not take over"},
		{"the target refuses this attempt", func(w *world) {
			w.i(2).Report.Role.PromotionRefused, w.i(2).Report.Role.PromotionRefusedAttempt = "c1-3 holds more", "attempt-1"
			w.held(3, "1:1-102", "")
		}, "c1-3", "c1-3 holds more"},
		{"the target refused an earlier attempt", func(w *world) {
			w.i(2).Report.Role.PromotionRefused, w.i(2).Report.Role.PromotionRefusedAttempt = "c1-3 holds more", "attempt-0"
		}, "c1-2", "is being promoted"},
		{"the target's Pod is gone and it held the lease", func(w *world) {
			w.lose(2)
			w.Lease = Lease{Known: true, Holder: "c1-2/pod-2", Unchanged: time.Second}
		}, "c1-2", "waiting until the lease of c1-2/pod-2"},
		{"the target's server hangs", func(w *world) {
			w.i(2).Report.MySQL = nil
			w.Now = now.Add(api.PrimaryLeaseTTL)
		}, "c1-3", "does not answer its manager"},
		{"the old primary comes back", func(w *world) { w.add(1); w.Instances = w.Instances[1:] }, "c1-2", "is being promoted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := failingOver()
			tc.change(w)
			d := Decide(w.Snapshot)
			if tr := d.Status.PrimaryTransition; tr == nil || tr.To != tc.to || tr.Kind != api.TransitionFailover {
				t.Errorf("transition %+v", tr)
			}
			says(t, d, tc.says)
		})
	}
}

func TestOldPrimaryThatHoldsMoreThanAnyReplacementResumes(t *testing.T) {
	w := sound().held(1, "1:1-120", "").free()
	w.transition(api.TransitionFailover, "c1-2")
	w.Lease.Holder = ""
	w.i(1).Report.MySQL.ReadOnly, w.i(1).Report.MySQL.SuperReadOnly = true, true
	w.i(2).Report.Role.PromotionRefused, w.i(2).Report.Role.PromotionRefusedAttempt = "c1-1 holds more", "attempt-1"
	d := Decide(w.Snapshot)
	if d.Status.PrimaryTransition != nil || d.Status.TargetPrimary != "c1-1" {
		t.Errorf("transition %+v", d.Status.PrimaryTransition)
	}
	says(t, d, "c1-1 came back and resumes")
}

func TestOnlyInstanceWhoseDataIsGoneIsNotMadeAnew(t *testing.T) {
	w := alone().lose(1)
	w.i(1).Volumes, w.i(1).MissingVolumes = nil, []string{"c1-1"}
	d := Decide(w.Snapshot)
	does(t, d)
	says(t, d, "Blocked: the data of c1-1, the only instance, is gone")
}

func TestMassRestartWaitsForThePrimaryOrElects(t *testing.T) {
	w := sound().lose(1).lose(2).lose(3)
	does(t, Decide(w.Snapshot), "create Pod c1-1", "create Pod c1-2", "create Pod c1-3")
	w.free()
	if d := Decide(w.Snapshot); d.Status.PrimaryTransition != nil || d.Status.Phase != api.PhaseBlocked {
		t.Errorf("transition %+v, phase %s", d.Status.PrimaryTransition, d.Status.Phase)
	}
	w.Instances = nil
	w.add(1).Report.MySQL.ReadOnly = true
	w.i(1).Pod.Role = ""
	w.add(2)
	w.Lease = Lease{Known: true, Holder: "c1-1/pod-1"}
	if d := Decide(w.Snapshot); d.Rule != "the primary is opening" {
		t.Errorf("rule %q", d.Rule)
	}
}

func TestWhomThePrimaryKnowsIsKept(t *testing.T) {
	w := sound()
	w.Cluster.Status.PrimaryKnows = []string{"c1-1", "c1-2"}
	for peers, want := range map[string]string{"": "c1-1 c1-2", "c1-2": "c1-1 c1-2", "c1-2 c1-3": "c1-1 c1-2 c1-3", "c1-2 c1-9": "c1-1 c1-2"} {
		w.i(1).Report.Lease.Peers = strings.Fields(peers)
		if got := strings.Join(Decide(w.Snapshot).Status.PrimaryKnows, " "); got != want {
			t.Errorf("it asks %q: %q, want %q", peers, got, want)
		}
	}
}
