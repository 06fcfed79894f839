package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"cnmsql.co/operator/e2e/chaos/plan"
)

// print tells what became of each fault of a round, and of the round.
func (r *result) print(out io.Writer) {
	for _, o := range r.outcomes {
		_, _ = fmt.Fprintf(out, "           %s\n", o)
	}
	primary := "primary " + r.to
	if r.promotions != 0 {
		primary = fmt.Sprintf("primary %s → %s in %d promotion(s)", r.from, r.to, r.promotions)
	}
	_, _ = fmt.Fprintf(out, "           => %s; longest pause %s through the Service (from %s), %s directly; after the last repair writable in %s, all well in %s\n",
		primary, seconds(r.service), r.since.UTC().Format("15:04:05.0"), seconds(r.direct), seconds(r.writable), seconds(r.ready))
	for _, line := range r.madeAnew {
		_, _ = fmt.Fprintf(out, "              %s\n", line)
	}
	if r.broken == nil {
		_, _ = fmt.Fprintf(out, "           => missing 0, two-writer time 0 s, generation %d, labels right, all attached\n", r.found.generation)
		return
	}
	for line := range strings.SplitSeq(r.broken.Error(), "\n") {
		_, _ = fmt.Fprintf(out, "           BROKEN: %s\n", line)
	}
}

func (o *outcome) String() string {
	s := fmt.Sprintf("+%4.1f s  %-20s", o.fault.At.Seconds(), o.fault.Kind)
	if o.instance != "" {
		s += fmt.Sprintf(" %s (%s)", o.instance, o.fault.Target)
	}
	if o.fault.For > 0 && o.impossible == nil {
		s += fmt.Sprintf(" for %s", seconds(o.fault.For))
	}
	if len(o.said) > 0 {
		s += ": " + strings.Join(o.said, ", ")
	}
	if o.impossible != nil {
		return s + "; could not be done: " + brief(o.impossible)
	}
	return s + "; writes stood still for " + seconds(o.still)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }

// tally is what the summary says of a kind.
type tally struct {
	done, impossible int
	// alone and company are the longest pauses, in rounds of this fault alone and with others.
	alone, company time.Duration
	solo           int
}

// summary is what a run comes to.
type summary struct {
	rounds, faults, promotions, madeAnew int
	kinds                                map[plan.Kind]*tally
	last                                 findings
	stale, longest, slowest              time.Duration
}

func newSummary() *summary { return &summary{kinds: map[plan.Kind]*tally{}} }

func (s *summary) add(r *result) {
	s.rounds++
	s.promotions += int(r.promotions)
	s.madeAnew += len(r.madeAnew)
	s.longest, s.slowest = max(s.longest, r.service), max(s.slowest, r.ready)
	s.stale = max(s.stale, r.found.stale)
	s.last = r.found
	for _, o := range r.outcomes {
		t := s.kinds[o.fault.Kind]
		if t == nil {
			t = &tally{}
			s.kinds[o.fault.Kind] = t
		}
		if o.impossible != nil {
			t.impossible++
			continue
		}
		s.faults++
		t.done++
		if len(r.outcomes) == 1 {
			t.solo++
			t.alone = max(t.alone, o.still)
		} else {
			t.company = max(t.company, o.still)
		}
	}
}

func (s *summary) print(out io.Writer, r *runner) {
	_, _ = fmt.Fprintf(out, "\n%-22s %6s %10s %7s %22s %24s\n", "fault", "done", "impossible", "alone", "longest pause alone", "longest pause in company")
	for _, kind := range slices.Sorted(maps.Keys(s.kinds)) {
		t := s.kinds[kind]
		alone, company := "-", "-"
		if t.solo > 0 {
			alone = seconds(t.alone)
		}
		if t.done > t.solo {
			company = seconds(t.company)
		}
		_, _ = fmt.Fprintf(out, "%-22s %6d %10d %7d %22s %24s\n", kind, t.done, t.impossible, t.solo, alone, company)
	}
	_, _ = fmt.Fprintf(out, "\n%d rounds, %d faults, %d promotions, %d instances made anew because they had diverged\n", s.rounds, s.faults, s.promotions, s.madeAnew)
	_, _ = fmt.Fprintf(out, "%d writes acknowledged through the Service, %d directly; missing %d, invented %d, two-writer time %s\n",
		r.clients.service.Count(), r.clients.direct.Count(), s.last.missing, s.last.invented, seconds(s.last.overlap))
	_, _ = fmt.Fprintf(out, "longest pause %s; all well at most %s after the last repair; a label outlived its role for at most %s\n\n",
		seconds(s.longest), seconds(s.slowest), seconds(s.stale))
}
