package core

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

func TestExplanationNamesTheRuleByItsPlaceInTheDocument(t *testing.T) {
	for want, w := range map[string]*world{
		"the primary is healthy": sound(), "the primary has failed": sound().crash(1),
		"a switchover is asked for": func() *world { w := sound(); w.Cluster.Status.TargetPrimary = "c1-2"; return w }(),
	} {
		o := Explain(w.Snapshot).Decision
		if o.Rule != want || PrimaryRules[o.Number-1].Name != want || o.Does != PrimaryRules[o.Number-1].Does {
			t.Errorf("rule %d, %s; want %s", o.Number, o.Rule, want)
		}
	}
}

func TestExplanationCountsWhatEachInstanceHasAndLacks(t *testing.T) {
	w := sound().held(1, "1:1-110", "").held(2, "1:1-90", "1:80-105").held(3, "1:1-100,3:1-2", "1:90-100")
	w.Cluster.Spec.FailoverPolicy = &api.FailoverPolicy{PreferredPrimary: []string{"c1-3", "c1-1"}}
	w.i(2).Report.MySQL.Replication.SecondsBehind = new(int64(7))
	e := Explain(w.Snapshot)
	one, two, three := e.Instances[0], e.Instances[1], e.Instances[2]
	if one.Role != "primary" || *one.Executed != 110 || one.Missing != nil || one.Preference != 2 || one.Switchover != "is the primary" {
		t.Errorf("c1-1 %+v", one)
	}
	if *two.Executed != 90 || *two.Received != 26 || *two.Held != 105 || *two.Unapplied != 15 || *two.Missing != 5 || *two.LagSeconds != 7 || two.Switchover != "fit" || two.Preference != 0 {
		t.Errorf("c1-2 %+v", two)
	}
	if three.ErrantCount != 2 || three.Errant != set("3:1-2").String() || three.Switchover != "it has diverged from the primary" || three.Preference != 1 {
		t.Errorf("c1-3 %+v", three)
	}
}

func TestExplanationTellsWhoWouldBePromotedIfThePrimaryDied(t *testing.T) {
	w := sound().held(2, "1:1-90", "1:80-90").held(3, "1:1-95", "1:80-100")
	before, err := w.Dump()
	if err != nil {
		t.Fatal(err)
	}
	e := Explain(w.Snapshot)
	if e.Decision.Rule != "the primary is healthy" || len(e.WithoutPrimary) != 1 {
		t.Fatalf("%+v", e)
	}
	step := e.WithoutPrimary[0]
	if o := step.Outcome; o.Winner != "c1-3" || o.Rule != "the primary has failed" || !strings.HasPrefix(step.Assuming, "c1-1 died now") || len(o.Election.Candidates) != 2 {
		t.Errorf("%+v", step)
	}
	if after, err := w.Dump(); err != nil || string(before) != string(after) {
		t.Errorf("the snapshot was changed: %v", err)
	}
}

func TestExplanationTellsWhatWouldBlockAFailoverAndWhatLetsItGoOn(t *testing.T) {
	w := sound().held(2, "1:1-50", "").held(3, "1:1-50", "")
	w.Cluster.Spec.FailoverPolicy = &api.FailoverPolicy{MaxTransactionsBehind: new(int64(10))}
	o := Explain(w.Snapshot).WithoutPrimary[0].Outcome
	if o.Winner != "" || !o.Blocked || o.Reason != api.ReasonNoSafeCandidate || !strings.Contains(o.WaysOn, "maxTransactionsBehind") {
		t.Errorf("%+v", o)
	}
	if c := o.Election.Candidates; len(c) != 2 || c[0].Missing != 50 {
		t.Errorf("candidates %+v", c)
	}
}

func TestExplanationTellsWhatFollowsOnceTheBrakeLetsGo(t *testing.T) {
	w := sound()
	w.Cluster.Spec.FailoverPolicy = &api.FailoverPolicy{MinTimeBetweenFailovers: &metav1.Duration{Duration: 10 * time.Minute}}
	at := metav1.NewTime(now.Add(-time.Minute))
	w.Cluster.Status.LastFailoverTimestamp, w.Cluster.Status.LastFailoverTarget, w.Cluster.Status.LastFailoverGeneration = &at, "c1-1", 3
	steps := Explain(w.Snapshot).WithoutPrimary
	if len(steps) != 2 || steps[0].Outcome.Reason != api.ReasonFailoverBraked || steps[0].Outcome.WaysOn == "" || steps[1].Outcome.Winner == "" {
		t.Errorf("%+v", steps)
	}
	if want := "at " + now.Add(9*time.Minute).Format(time.RFC3339); !strings.Contains(steps[1].Assuming, want) {
		t.Errorf("assuming %q, want %q", steps[1].Assuming, want)
	}
}

func TestExplanationOfAFailedPrimaryKeepsWhatIsKnownOfItAndWaitsOutItsLease(t *testing.T) {
	w := sound().crash(1)
	w.Lease.Holder = "c1-1/pod-1"
	e := Explain(w.Snapshot)
	if e.Decision.Reason != api.ReasonLeaseHeld || !strings.Contains(e.Evidence, "killed by signal 9") {
		t.Errorf("%q, %+v", e.Evidence, e.Decision)
	}
	if step := e.WithoutPrimary[0]; step.Outcome.Winner == "" || !strings.Contains(step.Assuming, "does not come back") {
		t.Errorf("%+v", step)
	}
}

func TestExplanationShowsEachConditionThatChanges(t *testing.T) {
	var fields []string
	for _, c := range Explain(sound().crash(1).Snapshot).Decision.Writes {
		fields = append(fields, c.Field)
	}
	// The lease was given back, so that everybody is asked anew before anything is written.
	if fields != nil {
		t.Errorf("written before everybody was asked: %v", fields)
	}
	w := sound().crash(1)
	w.Fresh = true
	for _, c := range Explain(w.Snapshot).Decision.Writes {
		fields = append(fields, c.Field)
	}
	for _, want := range []string{"conditions[Ready]", "primaryTransition", "targetPrimary", "primaryFailingSince"} {
		if !strings.Contains(strings.Join(fields, " "), want) {
			t.Errorf("%s is not among %v", want, fields)
		}
	}
}

func TestExplanationTellsNothingOfInstancesThatWereNotAsked(t *testing.T) {
	w := sound().silence(3)
	w.i(3).Asked = false
	e := Explain(w.Snapshot)
	if len(e.WithoutPrimary) > 0 || len(e.NotAsked) != 1 || e.NotAsked[0] != "c1-3" || e.Instances[2].Switchover != "not known" {
		t.Errorf("%+v, not asked %v", e.WithoutPrimary, e.NotAsked)
	}
	w.i(3).Asked = true
	if e = Explain(w.Snapshot); len(e.WithoutPrimary) != 1 || len(e.NotAsked) > 0 {
		t.Errorf("asked, and silent: %+v, not asked %v", e.WithoutPrimary, e.NotAsked)
	}
}
