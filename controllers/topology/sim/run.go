package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Plan is everything that makes a run what it is.
type Plan struct {
	Config Config
	Faults []Fault
	// Seed is of all chance within the run.
	Seed uint64
}

// Bounds of a run.
const (
	// patience is how long progress may take after everything was repaired.
	patience = 150 * time.Second
	// settle is how long a run goes on after the last fault began, before everything is repaired.
	settle = 2 * time.Second
)

// Result is what came of a run.
type Result struct {
	Violation *Violation
	// Events, Passes and Turns count what happened: events of the world, decisions of the operator and of
	// the instances.
	Events, Passes, Turns int
	// Promotions is how many there were, Took how long the run was in its own time.
	Promotions int64
	Took       time.Duration
	// Excused tells that nobody may be promoted any more, so rightly nobody was.
	Excused bool
	// Recovery is how long it took from the repair of everything until clients could write.
	Recovery time.Duration
}

// Run runs a plan. tell hears each line of the story; nil for none.
func Run(p Plan, sets *Sets, tell func(at time.Duration, who, what string)) Result {
	w := newWorld(p.Config, rand.New(rand.NewPCG(p.Seed, 1)), sets, tell) // #nosec G404 -- chance is to be repeatable
	repairs := map[int]func(){}
	end := time.Duration(0)
	for n, f := range p.Faults {
		f.A, f.B = f.A%p.Config.Instances, f.B%p.Config.Instances
		if f.A == f.B {
			f.B = (f.B + 1) % p.Config.Instances
		}
		end = max(end, f.At+min(f.For, 25*time.Second))
		w.after(nil, f.At, func() {
			repair := w.strike(f)
			if repair == nil {
				return
			}
			repairs[n] = repair
			w.after(nil, f.For, func() { w.repair(repairs, n, f) })
		})
	}
	end += settle
	w.after(nil, end, func() {
		w.say("REPAIR", "everything is repaired")
		for n := range p.Faults {
			w.repair(repairs, n, p.Faults[n])
		}
		w.healedAt = w.t
	})
	for w.violation == nil && w.step(end) {
	}
	recovered := w.recover(end)
	r := Result{
		Violation: w.violation, Events: w.events, Passes: w.passes, Turns: w.turns, Took: w.t,
		Promotions: w.api.cluster.c.Status.CurrentPrimaryGeneration - 1, Excused: w.violation == nil && !recovered,
	}
	if recovered {
		r.Recovery = w.t - end
	}
	return r
}

func (w *World) repair(repairs map[int]func(), n int, f Fault) {
	repair := repairs[n]
	if repair == nil {
		return
	}
	delete(repairs, n)
	w.say("repair", "over: %s", f.Kind)
	repair()
}

// recover goes on until clients can write again, or long enough to know that they cannot, and tells whether they can.
func (w *World) recover(end time.Duration) bool {
	for at := end; w.violation == nil && at < end+patience; at += 500 * time.Millisecond {
		for w.violation == nil && w.step(at) {
		}
		if w.violation != nil || w.lacks() == "" {
			return w.violation == nil
		}
	}
	if w.violation != nil || w.excused() {
		return false
	}
	w.violate("I7", "%s after everything was repaired: %s; status: %s: %s", patience, w.lacks(), w.api.cluster.c.Status.Phase, w.api.cluster.c.Status.PhaseReason)
	return false
}

// Tell runs a plan and returns its story, one line per thing that happened.
func Tell(p Plan) (story string, r Result) {
	var b strings.Builder
	n := 0
	fmt.Fprintf(&b, "%d instances, semi-sync %d, seed %d\n", p.Config.Instances, p.Config.SemiSync, p.Seed)
	for _, f := range p.Faults {
		fmt.Fprintf(&b, "  planned: %s\n", f)
	}
	r = Run(p, &Sets{}, func(at time.Duration, who, what string) {
		n++
		fmt.Fprintf(&b, "%4d  %s  %-9s  %s\n", n, clock(at), who, what)
	})
	return b.String(), r
}

// clock writes a time of the world.
func clock(d time.Duration) string {
	return fmt.Sprintf("%7.3fs", d.Seconds())
}

// Random is the plan that belongs to a seed.
func Random(seed uint64, rules *Rules) Plan { return RandomOf(seed, rules, Kinds) }

// RandomOf is a plan with faults of these kinds only.
func RandomOf(seed uint64, rules *Rules, kinds []FaultKind) Plan {
	r := rand.New(rand.NewPCG(seed, 2)) // #nosec G404 -- chance is to be repeatable
	cfg := Config{Instances: 3, SemiSync: 1, Rules: rules}
	switch r.IntN(10) {
	case 0, 1:
		cfg.Instances = 2
	case 2:
		cfg.Instances = 4
	case 3:
		cfg.Instances = 5
	}
	switch x := r.IntN(10); {
	case x == 0:
		cfg.SemiSync = 0
	case x == 1 && cfg.Instances > 3:
		cfg.SemiSync = 2
	}
	cfg.Preferred = r.IntN(4) == 0
	if r.IntN(2) == 0 {
		cfg.Drift = 50_000
	}
	if r.IntN(4) == 0 {
		cfg.FailoverDelay = 2
	}
	p := Plan{Config: cfg, Seed: seed}
	// Faults come in clusters: each is more likely to matter while another one is being dealt with.
	centre := 500*time.Millisecond + time.Duration(r.Int64N(int64(7*time.Second)))
	for range 1 + r.IntN(5) {
		f := Fault{Kind: kinds[r.IntN(len(kinds))], At: centre, A: r.IntN(cfg.Instances), B: r.IntN(cfg.Instances)}
		if r.IntN(3) == 0 {
			f.At += time.Duration(r.Int64N(int64(20 * time.Second)))
		} else {
			f.At += time.Duration(r.Int64N(int64(2 * time.Second)))
		}
		if r.IntN(2) == 0 {
			f.A = 0
		}
		f.For = time.Duration(r.Int64N(int64(2 * time.Second)))
		if r.IntN(3) > 0 {
			f.For = time.Duration(r.Int64N(int64(40 * time.Second)))
		}
		p.Faults = append(p.Faults, f)
	}
	slices.SortFunc(p.Faults, func(a, b Fault) int { return int(a.At - b.At) })
	return p
}
