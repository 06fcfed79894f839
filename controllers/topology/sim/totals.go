package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Totals sums up many runs.
type Totals struct {
	Schedules, Events, Passes, Turns int
	// Excused are the schedules that left nobody who may be promoted.
	Excused    int
	Promotions int64
	Faults     map[FaultKind]int
	Violations map[string]int
	// Slowest is the longest time from the repair of everything until clients could write, and Seed whose.
	Slowest time.Duration
	Seed    uint64
}

// Add takes the result of one run.
func (t *Totals) Add(p Plan, r Result) {
	if t.Faults == nil {
		t.Faults, t.Violations = map[FaultKind]int{}, map[string]int{}
	}
	t.Schedules++
	t.Events += r.Events
	t.Passes += r.Passes
	t.Turns += r.Turns
	t.Promotions += r.Promotions
	for _, f := range p.Faults {
		t.Faults[f.Kind]++
	}
	if r.Excused {
		t.Excused++
	}
	if r.Violation != nil {
		t.Violations[r.Violation.Invariant]++
	} else if r.Recovery > t.Slowest {
		t.Slowest, t.Seed = r.Recovery, p.Seed
	}
}

// String is a report for people.
func (t *Totals) String() string {
	var b strings.Builder
	faults, violations := 0, 0
	for _, n := range t.Faults {
		faults += n
	}
	for _, n := range t.Violations {
		violations += n
	}
	fmt.Fprintf(&b, "schedules %d, faults injected %d, violations %d\n", t.Schedules, faults, violations)
	for _, k := range Kinds {
		fmt.Fprintf(&b, "  %8d  %s\n", t.Faults[k], k)
	}
	fmt.Fprintf(&b, "promotions %d, decisions of the operator %d, of instances %d, events %d\n", t.Promotions, t.Passes, t.Turns, t.Events)
	fmt.Fprintf(&b, "longest from the repair of everything to a writable primary: %s (seed %d); schedules that left nobody who may be promoted: %d", t.Slowest.Round(time.Millisecond), t.Seed, t.Excused)
	var names []string
	for n := range t.Violations {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		fmt.Fprintf(&b, "\n%s violated %d times", n, t.Violations[n])
	}
	return b.String()
}
