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

func since(w *world, ago time.Duration) {
	at := metav1.NewMicroTime(now.Add(-ago))
	w.Cluster.Status.PrimaryFailingSince = &at
}

func TestEvidence(t *testing.T) {
	readOnly := func(w *world) { w.i(1).Report.MySQL.ReadOnly, w.i(1).Report.MySQL.SuperReadOnly = true, true }
	for _, tc := range []struct {
		name   string
		change func(*world)
		want   state
	}{
		{"writable in this generation", func(*world) {}, healthy},
		{"writable although its Pod is being stopped", func(w *world) { w.i(1).Pod.Terminating = true }, healthy},
		{"writable although its Pod is not Ready", func(w *world) { w.i(1).Pod.Ready = false }, healthy},
		{"writable in an earlier generation", func(w *world) { w.i(1).Report.Role.Generation = 2 }, opening},
		{"read-only", readOnly, opening},
		{"read-only for a long time", func(w *world) { readOnly(w); since(w, time.Minute) }, failing},
		{"read-only, and the clock was set back", func(w *world) { readOnly(w); since(w, -time.Hour) }, opening},
		{"read-only, its Pod is being stopped", func(w *world) { readOnly(w); w.i(1).Pod.Terminating = true }, failing},
		{"it refuses to resume", func(w *world) { readOnly(w); w.i(1).Report.Role.ResumeRefused = "it lost a transaction" }, failing},
		{"its server hangs", func(w *world) { w.i(1).Report.MySQL = nil }, opening},
		{"its server is down, and replicas heard it a moment ago", func(w *world) {
			w.i(1).Report.MySQL, w.i(1).Report.Server.State = nil, protocol.ServerDown
		}, failing},
		{"its server is starting", func(w *world) { w.i(1).Report.MySQL, w.i(1).Report.Server.State = nil, protocol.ServerStarting }, failing},
		{"its data is gone", func(w *world) {
			w.i(1).Report.Provision = &protocol.Provision{Step: "waiting"}
			w.i(1).Report.MySQL = nil
		}, failing},
		{"its Pod is gone", func(w *world) { w.lose(1) }, failing},
		{"its Pod has failed", func(w *world) { w.i(1).Report = nil; w.i(1).Pod.Ended = "Failed (Evicted)" }, failing},
		{"its Pod was made anew and waits for a node", func(w *world) { w.lose(1); w.i(1).Pod = &Pod{UID: "new"} }, failing},
		{"it was not asked yet", func(w *world) { w.silence(1); w.i(1).Asked = false }, unreachable},
		{"silent, Pod Ready, lease renewed", func(w *world) { w.silence(1) }, unreachable},
		{"silent, Pod Ready, lease expired", func(w *world) { w.silence(1); w.Lease.Unchanged = api.PrimaryLeaseTTL }, failing},
		{"silent, Pod Ready, lease expired, heard by a replica", func(w *world) { w.i(1).Report = nil; w.Lease.Unchanged = api.PrimaryLeaseTTL }, unreachable},
		{"silent, Pod Ready, no lease", func(w *world) { w.silence(1); w.Lease = Lease{} }, unreachable},
		{"silent, Pod not Ready", func(w *world) { w.silence(1); w.i(1).Pod.Ready = false }, failing},
		{"silent, Pod not Ready, heard by a replica", func(w *world) { w.i(1).Report = nil; w.i(1).Pod.Ready = false }, unreachable},
		{"silent, Pod not Ready, a replica's receiver runs and hears nothing", func(w *world) {
			w.i(1).Report, w.i(1).Pod.Ready = nil, false
			for _, n := range []int{2, 3} {
				w.i(n).Report.MySQL.Replication.HeartbeatAgeMillis = 6_500
			}
		}, failing},
		{"silent, Pod not Ready, and what a replica heard is old", func(w *world) {
			w.i(1).Report, w.i(1).Pod.Ready = nil, false
			w.i(2).Age, w.i(3).Age = 6*time.Second, 6*time.Second
		}, failing},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := sound()
			tc.change(w)
			p := &pass{s: &w.Snapshot, c: w.Cluster, st: &w.Cluster.Status}
			if v := p.evidence(p.primary()); v.state != tc.want {
				t.Errorf("state %d (%s), want %d", v.state, v.why, tc.want)
			}
		})
	}
}

func TestUnreachablePrimaryIsToldOnceAndKeepsItsLabel(t *testing.T) {
	w := sound()
	w.i(1).Report = nil
	d := Decide(w.Snapshot)
	says(t, d, "PrimaryUnreachable: the operator gets no answer from the primary c1-1")
	does(t, d)
	if d = Decide(w.then(d).Snapshot); len(d.Events) > 0 {
		t.Errorf("told again: %q", events(d))
	}
}

func TestPrimaryThatLivesAndNoClientReachesHandsOver(t *testing.T) {
	w := sound()
	w.i(1).Report, w.i(1).Pod.Ready = nil, false
	d := Decide(w.Snapshot)
	if d.Status.PrimaryFailingSince == nil || d.Status.PrimaryTransition != nil {
		t.Fatalf("since %v, transition %+v", d.Status.PrimaryFailingSince, d.Status.PrimaryTransition)
	}
	w.then(d)
	w.Now = now.Add(api.PrimaryLeaseTTL)
	d = Decide(w.Snapshot)
	if tr := d.Status.PrimaryTransition; tr == nil || tr.Kind != api.TransitionSwitchover || tr.To != "c1-2" {
		t.Errorf("transition %+v", tr)
	}
	// A lease that it does not hold any more cannot be handed over: the target would refuse, again and again.
	w.Lease.Unchanged = api.PrimaryLeaseTTL
	d = Decide(w.Snapshot)
	if tr := d.Status.PrimaryTransition; tr != nil {
		t.Errorf("transition %+v", tr)
	}
	says(t, d, "its lease is not renewed")
}

func TestASwitchoverThatWasWithdrawnIsNotTriedAgainAtOnce(t *testing.T) {
	w := sound()
	w.i(1).Report, w.i(1).Pod.Ready = nil, false
	since(w, time.Minute)
	w.then(Decide(w.Snapshot))
	if w.Cluster.Status.PrimaryTransition == nil {
		t.Fatal("no transition")
	}
	w.i(2).Report.Role.PromotionRefused, w.i(2).Report.Role.PromotionRefusedAttempt = "it cannot", w.Cluster.Status.PrimaryTransition.Attempt
	w.then(Decide(w.Snapshot))
	if tr := Decide(w.Snapshot).Status.PrimaryTransition; tr != nil {
		t.Errorf("at once again: %+v", tr)
	}
}

func TestSilentPrimaryKeepsItsLabelUntilItIsKnownToBeGone(t *testing.T) {
	w := sound().silence(1)
	does(t, Decide(w.Snapshot))
	w.i(1).Pod.Ready = false
	does(t, Decide(w.Snapshot), `label Pod c1-1 "" false`)
}

func TestNewPrimaryHasItsOwnTimeToOpen(t *testing.T) {
	w := failingOver()
	since(w, time.Minute)
	w.claimed()
	d := Decide(w.Snapshot)
	if d.Rule != "the primary is opening" || d.Status.PrimaryTransition != nil {
		t.Errorf("rule %q: %s", d.Rule, d.Status.PhaseReason)
	}
	says(t, d, "Promoted: c1-2 is the primary (failover, generation 4)")
	if slices.ContainsFunc(actions(d), func(a string) bool { return strings.HasPrefix(a, "label Pod c1-2") }) {
		t.Errorf("actions %q: it is shown as a replica until it can be shown as the primary", actions(d))
	}
	says(t, d, "FailingOver: c1-2 is about to be writable\n")
	w.then(d).opened()
	d = Decide(w.Snapshot)
	if len(d.First) == 0 {
		t.Error("clients wait until the status is written")
	}
	if d.Status.PrimaryFailingSince != nil || d.Status.LastFailoverTarget != "c1-2" {
		t.Errorf("since %v, last failover to %q", d.Status.PrimaryFailingSince, d.Status.LastFailoverTarget)
	}
	does(t, d, `label Pod c1-2 "primary" true`)
}

func TestAnOpeningThatLastsSaysWhy(t *testing.T) {
	w := failingOver()
	since(w, time.Minute)
	w.claimed()
	d := Decide(w.Snapshot)
	if d.Recheck > openingQuietly {
		t.Errorf("looks again after %s", d.Recheck)
	}
	w.then(d)
	w.i(2).Report.Role.Doing = "taking the lease"
	w.Now = w.Now.Add(openingQuietly)
	says(t, Decide(w.Snapshot), "c1-2 is about to be writable: taking the lease")
}

func TestConnectionLostToAChangingPrimaryIsNoBrokenReplication(t *testing.T) {
	lost := func(w *world) *world {
		for _, n := range []int{2, 3} {
			r := w.i(n).Report.MySQL.Replication
			r.IORunning, r.Connected, r.IOErrno, r.IOError = false, false, 3032, "the server is in offline mode"
		}
		return w
	}
	for name, w := range map[string]*world{
		"a switchover is running": lost(moving()), "the primary is down": lost(deadPrimary()), "it was of the former primary": lost(moving()).stepDown("1:1-100").claimed().opened(),
	} {
		if d := Decide(w.Snapshot); len(d.Status.ReplicationBrokenInstances) > 0 {
			t.Errorf("%s: broken %v", name, d.Status.ReplicationBrokenInstances)
		}
	}
	if d := Decide(lost(sound()).Snapshot); len(d.Status.ReplicationBrokenInstances) != 2 {
		t.Errorf("with a healthy primary: broken %v", d.Status.ReplicationBrokenInstances)
	}
}

func TestRecoveryIsToldAfterAFailureOnly(t *testing.T) {
	w := moving().stepDown("1:1-100").claimed()
	d := Decide(w.Snapshot)
	d = Decide(w.then(d).opened().Snapshot)
	for _, e := range d.Events {
		if e.Reason == api.EventPrimaryRecovered {
			t.Errorf("after a switchover: %q", e.Message)
		}
	}
	w = sound()
	was := *w.i(1).Report
	d = Decide(w.lose(1).Snapshot)
	w.then(d)
	w.i(1).Pod, w.i(1).Report = &Pod{UID: "new", Ready: true, Running: true}, &was
	d = Decide(w.Snapshot)
	says(t, d, "PrimaryRecovered: the primary c1-1 is writable")
	if d.Status.PrimaryFailingSince != nil {
		t.Error("it still counts as failing")
	}
}

func TestPrimaryThatHangsAndKeepsItsLeaseIsFenced(t *testing.T) {
	hung := func(waited time.Duration) *world {
		w := sound()
		w.i(1).Report.MySQL = nil
		w.Lease.Holder = api.LeaseHolder("c1-1", w.i(1).Pod.UID)
		since(w, waited)
		return w
	}
	is := func(d Decision) bool {
		return slices.ContainsFunc(d.Actions, func(a Action) bool { return a.Kind == DeletePod && a.Instance == "c1-1" })
	}
	if d := Decide(hung(api.PrimaryLeaseTTL - time.Second).Snapshot); is(d) {
		t.Error("before its time to open has passed")
	}
	d := Decide(hung(api.PrimaryLeaseTTL).Snapshot)
	if !is(d) || d.Status.PrimaryTransition != nil {
		t.Errorf("rule %q, actions %q, transition %+v", d.Rule, actions(d), d.Status.PrimaryTransition)
	}
	accepted := hung(api.PrimaryLeaseTTL).accepting("c1-2", "")
	moved := hung(api.PrimaryLeaseTTL)
	moved.transition(api.TransitionSwitchover, "c1-2")
	target := sound().crash(1)
	target.transition(api.TransitionFailover, "c1-2")
	target.Cluster.Status.PrimaryTransition.StartedAt = metav1.NewMicroTime(now.Add(-api.PrimaryLeaseTTL))
	target.i(2).Report.MySQL = nil
	target.Lease.Holder = api.LeaseHolder("c1-2", target.i(2).Pod.UID)
	for name, w := range map[string]*world{"c1-1 with a loss accepted": accepted, "c1-1 during a switchover": moved, "c1-2, which is to replace it": target} {
		d := Decide(w.Snapshot)
		fenced := slices.ContainsFunc(d.Actions, func(a Action) bool { return a.Kind == DeletePod && a.Instance == name[:4] && a.PodUID != "" })
		if !fenced || d.Status.PrimaryTransition != nil && d.Status.PrimaryTransition.Attempt == w.NewAttempt {
			t.Errorf("%s hangs and keeps the lease: rule %q, actions %q", name, d.Rule, actions(d))
		}
	}
	refused := hung(api.PrimaryLeaseTTL)
	refused.i(1).Report.Role.ResumeRefused = "it lost transactions"
	other := hung(api.PrimaryLeaseTTL)
	other.Lease.Holder = api.LeaseHolder("c1-1", "an earlier Pod")
	for name, w := range map[string]*world{"it refuses to resume": refused, "its lease is an earlier Pod's": other} {
		if is(Decide(w.Snapshot)) {
			t.Error(name)
		}
	}
}

func TestEachRunOfThePrimarysServerHasItsOwnTimeToOpen(t *testing.T) {
	stopped := func(d Decision) bool {
		return slices.ContainsFunc(d.Actions, func(a Action) bool { return a.Kind == DeletePod && a.Instance == "c1-1" })
	}
	for name, restart := range map[string]func(*world){
		"a new Pod": func(w *world) {
			w.i(1).Pod, w.i(1).Report = nil, nil
			w.then(Decide(w.Snapshot))
		},
		"a new Pod, which was not seen to be gone": func(w *world) { w.then(Decide(w.Snapshot)) },
		"the server, in the same Pod": func(w *world) {
			w.i(1).Report.Server.State, w.i(1).Report.MySQL = protocol.ServerStarting, nil
			w.then(Decide(w.Snapshot))
		},
	} {
		t.Run(name, func(t *testing.T) {
			// It hangs for long, and is stopped.
			w := sound()
			first := *w.i(1).Report
			w.i(1).Report.MySQL = nil
			w.Lease.Holder = api.LeaseHolder("c1-1", w.i(1).Pod.UID)
			w.then(Decide(w.Snapshot))
			w.Now = w.Now.Add(api.PrimaryLeaseTTL)
			if d := Decide(w.Snapshot); !stopped(d) {
				t.Fatalf("it is not stopped: %q", actions(d))
			}
			restart(w)
			// It comes back a minute later, takes its lease, and is about to open.
			w.Now = w.Now.Add(time.Minute)
			report, mysql := first, *sound().i(2).Report.MySQL
			mysql.Replication = nil
			report.MySQL, report.Server.Since = &mysql, w.Now
			uid := "pod-1-again"
			if name == "the server, in the same Pod" {
				uid = "pod-1"
			}
			w.i(1).Report, w.i(1).Pod = &report, &Pod{UID: uid, Running: true}
			w.Lease = Lease{Known: true, Holder: api.LeaseHolder("c1-1", uid)}
			d := Decide(w.Snapshot)
			if stopped(d) || d.Rule != "the primary is opening" || d.Status.PrimaryTransition != nil {
				t.Errorf("rule %q, actions %q, transition %+v", d.Rule, actions(d), d.Status.PrimaryTransition)
			}
			w.then(d)
			w.Now = w.Now.Add(api.PrimaryLeaseTTL)
			if d = Decide(w.Snapshot); !stopped(d) {
				t.Errorf("it is waited for for ever: %q", actions(d))
			}
		})
	}
	w := sound()
	since(w, time.Minute)
	w.Cluster.Status.PrimaryOpening = &api.PrimaryOpening{}
	if d := Decide(w.Snapshot); d.Status.PrimaryOpening != nil {
		t.Error("a healthy primary is still being opened")
	}
}
