package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"cnmsql.co/operator/e2e/chaos/plan"
	"cnmsql.co/operator/e2e/framework"
)

func theScene() *scene {
	return &scene{r: &runner{e: &framework.Environment{}}, primary: "c-2", replicas: []string{"c-1", "c-3"}, nodes: map[string]string{"c-1": "n1", "c-2": "n2", "c-3": "n3"}}
}

func TestEveryKindOfThePlanCanBeDone(t *testing.T) {
	for _, kind := range plan.All() {
		f := theScene().make(plan.Fault{Kind: kind, Target: plan.Primary})
		if _, nobody := f.(unknown); f == nil || nobody {
			t.Errorf("%s is %T", kind, f)
		}
	}
	if _, err := theScene().make(plan.Fault{Kind: "earthquake"}).begin(t.Context()); err == nil {
		t.Error("an earthquake was done")
	}
}

func TestTargetsAreInstancesAsTheyWereWhenTheRoundBegan(t *testing.T) {
	for target, want := range map[plan.Target]string{plan.Primary: "c-2", plan.First: "c-1", plan.Second: "c-3", plan.Everybody: ""} {
		if got := theScene().instance(target); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
	f, ok := theScene().make(plan.Fault{Kind: plan.CutPeers, Target: plan.Second}).(cut)
	if !ok || f.node != "n3" || f.side != "peers" {
		t.Errorf("%+v", f)
	}
}

func TestOnlyTheKnownKindsAreChosen(t *testing.T) {
	o := options{}
	if err := o.choose("kill-server,cut-api"); err != nil || len(o.kinds) != 2 {
		t.Errorf("%v, %v", o.kinds, err)
	}
	if err := o.choose("earthquake"); err == nil {
		t.Error("an earthquake was chosen")
	}
	if err := o.choose(""); err != nil || len(o.kinds) != len(plan.All()) {
		t.Errorf("%v, %v", o.kinds, err)
	}
}

func TestARepairOfWhatIsGoneIsFineAndOtherErrorsAreNot(t *testing.T) {
	if said, err := goneIsFine("", errors.New("…: no such container runs")); err != nil || said == "" {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := goneIsFine("", errors.New("permission denied")); err == nil {
		t.Error("forgiven")
	}
}

func TestFaultsThatCouldNotBeDoneAreNotCountedAsDone(t *testing.T) {
	s := newSummary()
	s.add(&result{promotions: 1, outcomes: []*outcome{
		{fault: plan.Fault{Kind: plan.KillServer}, still: 3 * time.Second},
		{fault: plan.Fault{Kind: plan.DiskFull}, impossible: errNoLimit},
	}})
	s.add(&result{outcomes: []*outcome{{fault: plan.Fault{Kind: plan.KillServer}, still: time.Second}}})
	if s.faults != 2 || s.kinds[plan.DiskFull].done != 0 || s.kinds[plan.DiskFull].impossible != 1 {
		t.Errorf("%d, %+v", s.faults, s.kinds[plan.DiskFull])
	}
	if k := s.kinds[plan.KillServer]; k.done != 2 || k.solo != 1 || k.alone != time.Second || k.company != 3*time.Second {
		t.Errorf("%+v", k)
	}
}

func TestABrokenPromiseIsPrinted(t *testing.T) {
	var out bytes.Buffer
	(&result{from: "c-1", to: "c-2", promotions: 1, broken: errors.New("two writers\nanother"), outcomes: []*outcome{
		{fault: plan.Fault{Kind: plan.DiskFull, Target: plan.Primary}, instance: "c-1", impossible: errNoLimit},
	}}).print(&out)
	for _, want := range []string{"BROKEN: two writers", "BROKEN: another", "c-1 → c-2 in 1 promotion", "could not be done"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "missing 0") {
		t.Error("a broken round is praised")
	}
}
