package core

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

func (w *world) braked(least, window time.Duration) *world {
	f := w.Cluster.Spec.FailoverPolicy
	f.MinTimeBetweenFailovers, f.PrimaryStabilityWindow = &metav1.Duration{Duration: least}, nil
	if window > 0 {
		f.PrimaryStabilityWindow = &metav1.Duration{Duration: window}
	}
	return w
}

// healthyFor makes the primary's healthy stretch have begun so long ago; negative: it was never healthy.
func (w *world) healthyFor(d time.Duration) *world {
	w.Cluster.Status.PrimaryHealthySince = nil
	if d >= 0 {
		at := metav1.NewMicroTime(now.Add(-d))
		w.Cluster.Status.PrimaryHealthySince = &at
	}
	return w
}

const never = time.Duration(-1)

func TestTheBrakeHoldsAFailoverBackForExactlyItsTime(t *testing.T) {
	const m = time.Minute
	for _, tc := range []struct {
		name  string
		world *world
		left  time.Duration
	}{
		{"not configured", deadPrimary().remember(m, 3), 0},
		{"no failover yet", deadPrimary().braked(10*m, 0), 0},
		{"a window alone brakes nothing", func() *world {
			w := deadPrimary().braked(0, 2*m).remember(m, 3)
			w.Cluster.Spec.FailoverPolicy.MinTimeBetweenFailovers = nil
			return w
		}(), 0},
		{"a moment ago", deadPrimary().braked(10*m, 0).remember(m, 3), 9 * m},
		{"by the annotations alone", deadPrimary().braked(10*m, 0).annotated(m, 3), 9 * m},
		{"its last second", deadPrimary().braked(10*m, 0).remember(10*m-time.Second, 3), time.Second},
		{"its time has passed", deadPrimary().braked(10*m, 0).remember(10*m, 3), 0},
		{"the clock was set back: nothing has passed", deadPrimary().braked(10*m, 0).remember(-4*m, 3), 10 * m},
		{"a record too far ahead does not hold it back", deadPrimary().braked(10*m, 0).remember(-6*time.Hour, 3).annotated(-6*time.Hour, 3), 0},
		{"never seen healthy: from the promotion", deadPrimary().braked(10*m, 2*m).remember(9*m, 3).healthyFor(never), m},
		{"never seen healthy, long ago", deadPrimary().braked(10*m, 2*m).remember(11*m, 3).healthyFor(never), 0},
		{"healthy, not yet settled when it failed", deadPrimary().braked(10*m, 2*m).remember(11*m, 3).healthyFor(m), 11 * m},
		{"it came up again and again", deadPrimary().braked(10*m, 2*m).remember(50*m, 3).healthyFor(30 * time.Second), 11*m + 30*time.Second},
		{"settled a moment ago", deadPrimary().braked(10*m, 2*m).remember(20*m, 3).healthyFor(3 * m), 9 * m},
		{"settled long ago", deadPrimary().braked(10*m, 2*m).remember(time.Hour, 3).healthyFor(50 * m), 0},
		{"settled long ago, and it came up again a moment ago", func() *world {
			w := deadPrimary().braked(10*m, 2*m).remember(time.Hour, 3).healthyFor(m)
			at := metav1.NewTime(now.Add(-50 * m))
			w.Cluster.Status.LastFailoverSettled = &at
			return w
		}(), 0},
		{"a healthy stretch from before the failover is another primary's", deadPrimary().braked(10*m, 2*m).remember(9*m, 3).healthyFor(time.Hour), m},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.world.Snapshot)
			if held := d.Status.PrimaryTransition == nil; held != (tc.left > 0) {
				t.Fatalf("transition %+v: %s", d.Status.PrimaryTransition, d.Status.PhaseReason)
			}
			if tc.left == 0 {
				return
			}
			if want := min(tc.left, recordEvery); d.Recheck != want {
				t.Errorf("looks again after %s, want %s", d.Recheck, want)
			}
			if c := condition(d, api.ConditionFailoverBlocked); d.Status.Phase != api.PhaseBlocked || c.Reason != api.ReasonFailoverBraked || c.Status != "True" {
				t.Errorf("phase %s, condition %+v", d.Status.Phase, c)
			}
			tc.world.then(d)
			tc.world.Now = now.Add(tc.left - time.Second)
			tc.world.Fresh = true
			again := Decide(tc.world.Snapshot)
			if !strings.Contains(again.Status.PhaseReason, "held back until") || len(again.Events) > 0 {
				t.Errorf("a second before: %s, events %q", again.Status.PhaseReason, events(again))
			}
		})
	}
}

func TestAtTheEndOfTheBrakeTheFailoverFollowsWithoutAnyOtherEvent(t *testing.T) {
	w := deadPrimary().braked(10*time.Minute, 0).remember(time.Minute, 3)
	for range 100 {
		d := Decide(w.Snapshot)
		w.then(d)
		if d.Status.PrimaryTransition != nil {
			break
		}
		w.Now = w.Now.Add(d.Recheck)
	}
	if got := w.Now.Sub(now); w.Cluster.Status.PrimaryTransition == nil || got != 9*time.Minute {
		t.Errorf("transition %+v after %s", w.Cluster.Status.PrimaryTransition, got)
	}
}

func TestABrakedFailoverIsToldOnceWithTheMessageThatIsKept(t *testing.T) {
	w := deadPrimary().braked(10*time.Minute, 0).remember(time.Minute, 3).annotated(time.Minute, 3)
	d := Decide(w.Snapshot)
	says(t, d, "FailoverBlocked: the primary c1-1 has failed")
	says(t, d, "held back until 2030-01-02T03:13:05Z by failoverPolicy.minTimeBetweenFailovers")
	if len(d.Logs) != 1 || d.Logs[0].Message != "failover blocked by anti-flap cooldown" || d.Logs[0].Fields[0] != "lastFailover" || d.Logs[0].Fields[2] != "cooldown" {
		t.Errorf("logs %+v", d.Logs)
	}
	w.then(d)
	if again := Decide(w.Snapshot); len(again.Events)+len(again.Logs) > 0 {
		t.Errorf("told again: %q %+v", events(again), again.Logs)
	}
}

func TestTheBrakeHoldsNothingElseBack(t *testing.T) {
	braked := func(w *world) *world {
		return w.braked(10*time.Minute, 0).remember(time.Minute, 3).annotated(time.Minute, 3)
	}
	t.Run("a switchover that is asked for", func(t *testing.T) {
		w := braked(sound())
		w.Cluster.Status.TargetPrimary = "c1-2"
		if Decide(w.Snapshot).Status.PrimaryTransition == nil {
			t.Error("held back")
		}
	})
	t.Run("a Pod that is being stopped", func(t *testing.T) {
		w := braked(sound())
		w.i(1).Pod.Terminating = true
		if Decide(w.Snapshot).Status.PrimaryTransition == nil {
			t.Error("held back")
		}
	})
	t.Run("another election of the same failover", func(t *testing.T) {
		w := braked(failingOver()).crash(2)
		if tr := Decide(w.Snapshot).Status.PrimaryTransition; tr.To != "c1-3" {
			t.Errorf("transition %+v", tr)
		}
	})
	t.Run("the failed primary's Pod", func(t *testing.T) {
		does(t, Decide(braked(sound().lose(1).free()).Snapshot), "create Pod c1-1")
	})
	t.Run("a primary that hangs is stopped", func(t *testing.T) {
		w := braked(sound())
		w.i(1).Report.MySQL = nil
		since(w, api.PrimaryLeaseTTL)
		does(t, Decide(w.Snapshot), `label Pod c1-1 "" false`, "delete Pod c1-1")
	})
	t.Run("a primary that comes back", func(t *testing.T) {
		w := braked(deadPrimary())
		w.then(Decide(w.Snapshot))
		w.Instances = w.Instances[1:]
		w.add(1)
		d := Decide(w.Snapshot)
		says(t, d, "PrimaryRecovered")
		if d.Status.PrimaryFailingSince != nil || d.Status.Phase != api.PhaseReady {
			t.Errorf("since %v, phase %s", d.Status.PrimaryFailingSince, d.Status.Phase)
		}
	})
}

func TestTheBrakeHoldsTheOperatorsOwnMovesBack(t *testing.T) {
	w := sound().prefer("c1-2").braked(10*time.Minute, 0).remember(10*time.Minute-7*time.Second, 3).annotated(10*time.Minute-7*time.Second, 3)
	d := Decide(w.Snapshot)
	if d.Status.PrimaryTransition != nil || d.Recheck != 7*time.Second || d.Status.Phase != api.PhaseReady {
		t.Errorf("transition %+v, recheck %s, phase %s", d.Status.PrimaryTransition, d.Recheck, d.Status.Phase)
	}
	says(t, d, "the role is to return to c1-2, which is preferred; waiting for its time, held back until")
	w.Now = now.Add(7 * time.Second)
	if Decide(w.Snapshot).Status.PrimaryTransition == nil {
		t.Error("it does not follow")
	}

	w = sound().braked(10*time.Minute, 0).remember(time.Minute, 3).annotated(time.Minute, 3)
	w.i(1).Report, w.i(1).Pod.Ready = nil, false
	since(w, api.PrimaryLeaseTTL)
	d = Decide(w.Snapshot)
	if d.Status.PrimaryTransition != nil {
		t.Errorf("transition %+v", d.Status.PrimaryTransition)
	}
	says(t, d, "moving it away is held back until")
}

func TestAHistoryThatCannotBeReadBrakesUntilSomebodyCorrectsIt(t *testing.T) {
	unreadable := func(w *world) *world {
		w.remember(time.Minute, 3).annotated(time.Minute, 3).without(api.AnnotationLastFailoverTarget)
		w.Cluster.Status.LastFailoverTarget = ""
		return w
	}
	w := unreadable(deadPrimary().braked(10*time.Minute, 0))
	d := Decide(w.Snapshot)
	if c := condition(d, api.ConditionFailoverBlocked); d.Status.PrimaryTransition != nil || c.Reason != api.ReasonHistoryUnreadable {
		t.Fatalf("transition %+v, condition %+v", d.Status.PrimaryTransition, c)
	}
	for _, say := range []string{"has no lastFailoverTarget", "have no " + api.AnnotationLastFailoverTarget, "remove status.lastFailoverTimestamp"} {
		says(t, d, say)
	}
	if d.Status.LastFailoverTimestamp == nil {
		t.Error("it was changed")
	}
	does(t, d, `label Pod c1-1 "" false`)
	if again := Decide(w.then(d).Snapshot); len(again.Events) > 0 {
		t.Errorf("told again: %q", events(again))
	}
	// As the condition says: one copy removed is not two that cannot be read.
	for _, key := range []string{api.AnnotationLastFailover, api.AnnotationLastFailoverGeneration} {
		w.without(key)
	}
	if Decide(w.Snapshot).Status.PrimaryTransition == nil {
		t.Error("removing one copy does not help")
	}
	if Decide(unreadable(deadPrimary()).Snapshot).Status.PrimaryTransition == nil {
		t.Error("without a brake it holds a failover back")
	}
	if d := Decide(unreadable(sound().braked(10*time.Minute, 0)).Snapshot); len(d.Events)+len(d.Actions) > 0 || d.Status.Phase != api.PhaseReady {
		t.Errorf("a healthy Cluster: %q %q %s", events(d), actions(d), d.Status.Phase)
	}
}

func TestAHealthyStretchIsBrokenByAFailureOnly(t *testing.T) {
	const m = time.Minute
	healthySince := func(w *world) time.Duration {
		d := Decide(w.Snapshot)
		w.then(d)
		if d.Status.PrimaryHealthySince == nil {
			return never
		}
		return now.Sub(d.Status.PrimaryHealthySince.Time)
	}
	w := sound().healthyFor(5 * m)
	if got := healthySince(w); got != 5*m {
		t.Errorf("it goes on for %s", got)
	}
	report := w.i(1).Report
	w.i(1).Report = nil
	if healthySince(w); w.Cluster.Status.PrimaryHealthySince == nil {
		t.Error("that the operator cannot look broke it")
	}
	w.i(1).Report = report
	if got := healthySince(w); got != 5*m {
		t.Errorf("after the operator could not look: %s", got)
	}
	mysql := report.MySQL
	report.MySQL, report.Server.State = nil, protocol.ServerDown
	if got := healthySince(w); got != 5*m {
		t.Errorf("while it has failed the last stretch is told: %s", got)
	}
	report.MySQL, report.Server.State = mysql, protocol.ServerRunning
	if got := healthySince(w); got != 0 {
		t.Errorf("it came back, and the stretch began %s ago", got)
	}
	if Decide(moving().healthyFor(5*m).stepDown("1:1-100").claimed().Snapshot).Status.PrimaryHealthySince != nil {
		t.Error("the new primary has its predecessor's")
	}
}

func TestAStretchThatWasLongEnoughSettlesTheFailoverForGood(t *testing.T) {
	const m = time.Minute
	for name, tc := range map[string]struct {
		healthy time.Duration
		settled bool
	}{"long enough": {20 * m, true}, "exactly": {3 * m, true}, "too short": {2 * m, false}} {
		w := sound().braked(10*m, 2*m).remember(30*m, 3).annotated(30*m, 3).healthyFor(tc.healthy)
		since(w, m)
		d := Decide(w.Snapshot)
		if got := d.Status.LastFailoverSettled; (got != nil) != tc.settled || tc.settled && !got.Time.Equal(now.Add(2*m-tc.healthy)) {
			t.Errorf("%s: settled %v", name, got)
		}
		if got := d.Status.PrimaryHealthySince; got == nil || !got.Time.Equal(now) {
			t.Errorf("%s: healthy since %v", name, got)
		}
	}
	w := failingOver()
	at := metav1.NewTime(now.Add(-time.Hour))
	w.Cluster.Status.LastFailoverSettled = &at
	if d := Decide(w.claimed().Snapshot); d.Status.LastFailoverSettled != nil {
		t.Errorf("a new failover has settled already: %v", d.Status.LastFailoverSettled)
	}
}
