package core

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// lag makes a replica report how far it is behind; negative: it does not know.
func (w *world) lag(n int, d time.Duration) *world {
	h := &protocol.Heartbeat{}
	if d >= 0 {
		h.LagMillis = new(d.Milliseconds())
	}
	w.i(n).Report.Heartbeat = h
	return w
}

func (w *world) readyWithin(d time.Duration) *world {
	w.Cluster.Spec.Replication.MaxReadyLag = &metav1.Duration{Duration: d}
	return w
}

func TestAReplicaThatTheBoundHoldsBackIsNamed(t *testing.T) {
	for _, tc := range []struct {
		name  string
		world func() *world
		names bool
	}{
		{"beyond the bound", func() *world { return sound().readyWithin(30*time.Second).lag(2, time.Hour) }, true},
		{"nobody knows how far", func() *world { return sound().readyWithin(30*time.Second).lag(2, -1) }, true},
		{"within the bound, and not Ready for another reason", func() *world { return sound().readyWithin(30*time.Second).lag(2, time.Second) }, false},
		{"no bound", func() *world { return sound().lag(2, time.Hour) }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := tc.world()
			w.i(2).Pod.Ready = false
			d := Decide(w.Snapshot)
			if got := strings.Contains(d.Status.PhaseReason, "behind maxReadyLag: c1-2"); got != tc.names || d.Status.Phase != api.PhaseDegraded {
				t.Errorf("%s: %s", d.Status.Phase, d.Status.PhaseReason)
			}
			if c := condition(d, api.ConditionReady); (c.Reason == api.ReasonBehindMaxReadyLag) != tc.names {
				t.Errorf("reason %s", c.Reason)
			}
		})
	}
	// The kubelet has not looked yet.
	if d := Decide(sound().readyWithin(30*time.Second).lag(2, time.Hour).Snapshot); d.Status.Phase != api.PhaseReady {
		t.Errorf("%s: %s", d.Status.Phase, d.Status.PhaseReason)
	}
}

func TestTheLagIsRecordedNowAndThen(t *testing.T) {
	w := sound().lag(2, 2*time.Second).lag(3, 90*time.Second)
	d := Decide(w.Snapshot)
	if got := d.Status.ReplicationLagByInstance; len(got) != 2 || got["c1-2"] != 0 || got["c1-3"] != 90_000 {
		t.Fatalf("recorded %v", got)
	}
	w.then(d)
	w.lag(3, 120*time.Second)
	w.Now = w.Now.Add(10 * time.Second)
	if got := Decide(w.Snapshot).Status.ReplicationLagByInstance["c1-3"]; got != 90_000 {
		t.Errorf("after 10 s: %d", got)
	}
	w.Now = w.Now.Add(20 * time.Second)
	d = Decide(w.Snapshot)
	if got := d.Status.ReplicationLagByInstance["c1-3"]; got != 120_000 {
		t.Errorf("after 30 s: %d", got)
	}
	w.then(d)
	w.lag(2, time.Second).lag(3, -1)
	w.Now = w.Now.Add(recordEvery)
	d = Decide(w.Snapshot)
	if got := d.Status.ReplicationLagByInstance; len(got) != 1 {
		t.Errorf("of one nothing is known: %v", got)
	}
	w.then(d)
	w.Now = w.Now.Add(time.Hour)
	if at := Decide(w.Snapshot).Status.ReplicationLagUpdatedAt; !at.Equal(d.Status.ReplicationLagUpdatedAt) {
		t.Error("nothing has changed, and it is written")
	}
}

func TestHowFarBehindAWinnerMayHaveBeenIsBounded(t *testing.T) {
	const ago = 20 * time.Second // since the primary failed
	for _, tc := range []struct {
		name   string
		world  func(w *world) *world
		winner string
		says   string
	}{
		{"nothing is missing", func(w *world) *world { return w.held(2, "1:1-100", "").held(3, "1:1-100", "") }, "c1-2", ""},
		{"within the bound when the primary failed", func(w *world) *world { return w.lag(2, ago+30*time.Second).lag(3, time.Hour) }, "c1-2", ""},
		{
			"beyond it", func(w *world) *world { return w.lag(2, ago+45*time.Second).lag(3, time.Hour) }, "",
			"c1-2 misses transactions and was 45s behind the primary when that failed, more than maxReplicationLag (30s)",
		},
		{"nobody knows", func(w *world) *world { return w.lag(2, -1) }, "", "no heartbeat tells how far behind it was, which maxReplicationLag (30s) bounds"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := deadPrimary().held(2, "1:1-90", "").held(3, "1:1-80", "")
			w.Cluster.Spec.FailoverPolicy.MaxReplicationLag = &metav1.Duration{Duration: 30 * time.Second}
			w.Cluster.Status.PrimaryFailingSince = new(metav1.NewMicroTime(w.Now.Add(-ago)))
			for n := 2; n <= 3; n++ {
				w.i(n).Age = 0
			}
			tc.world(w)
			d := Decide(w.Snapshot)
			winner := ""
			if tr := d.Status.PrimaryTransition; tr != nil {
				winner = tr.To
			}
			if winner != tc.winner || !strings.Contains(d.Status.LastElection.Verdict, tc.says) {
				t.Errorf("winner %q: %+v", winner, d.Status.LastElection)
			}
		})
	}
}

func TestAnExplanationLetsTheLagGrowAsWell(t *testing.T) {
	w := sound().held(2, "1:1-90", "").held(3, "1:1-90", "").lag(2, 20*time.Second).lag(3, 20*time.Second)
	w.Cluster.Spec.FailoverPolicy.MaxReplicationLag = &metav1.Duration{Duration: 10 * time.Second}
	e := Explain(w.Snapshot)
	last := e.WithoutPrimary[len(e.WithoutPrimary)-1].Outcome
	if last.Winner != "" || !strings.Contains(last.Message, "more than maxReplicationLag (10s)") {
		t.Errorf("winner %q: %s", last.Winner, last.Message)
	}
	if lag, _ := w.i(2).Report.Lag(); lag != 20*time.Second {
		t.Errorf("the snapshot was changed: %s", lag)
	}
}

func TestTheBoundOfReadsDoesNotBoundAFailover(t *testing.T) {
	w := deadPrimary().readyWithin(30*time.Second).lag(2, time.Hour).lag(3, -1)
	w.i(2).Pod.Ready, w.i(3).Pod.Ready = false, false
	if tr := Decide(w.Snapshot).Status.PrimaryTransition; tr == nil || tr.To != "c1-2" {
		t.Errorf("transition %+v", tr)
	}
}
