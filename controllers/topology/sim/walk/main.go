// Walk runs many random schedules, or every pair of faults, against the shipped rules; or it replays one as a story.
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"cnmsql.co/operator/controllers/topology/sim"
)

func main() {
	seed := flag.Uint64("seed", 1, "first seed; each schedule has the next")
	schedules := flag.Int("schedules", 1_000_000, "how many to run")
	duration := flag.Duration("duration", 10*time.Minute, "how long at most")
	workers := flag.Int("workers", runtime.GOMAXPROCS(0), "how many at once")
	replay := flag.Bool("replay", false, "tell the story of the schedule with this seed")
	stop := flag.Int("stop", 10, "stop after so many violations")
	pairs := flag.Bool("pairs", false, "run every pair of faults instead of random schedules; seed is then its number")
	mutant := flag.String("mutant", "", "run with this guard removed")
	flag.Parse()
	debug.SetGCPercent(800) // what is alive is small
	plan := func(seed uint64) sim.Plan { return sim.Random(seed, nil) }
	if *mutant != "" {
		m, ok := sim.FindMutant(*mutant)
		if !ok {
			_, _ = fmt.Fprintln(os.Stderr, "there is no mutant", *mutant)
			os.Exit(2)
		}
		plan = m.Plan
	}
	if *pairs {
		all := slices.Collect(sim.Pairs())
		*schedules = min(*schedules, len(all))
		plan = func(n uint64) sim.Plan { return all[(n-1)%uint64(len(all))] }
	}
	if *replay {
		os.Exit(tell(os.Stdout, plan(*seed)))
	}
	w := &walk{plan: plan, next: *seed, last: *seed + uint64(max(*schedules, 0)), until: time.Now().Add(*duration), stop: *stop} // #nosec G115 -- not negative
	os.Exit(w.run(os.Stdout, *workers))
}

// tell replays a plan, then what is left of it when needless faults are taken away.
func tell(out io.Writer, p sim.Plan) int {
	story, r := sim.Tell(p)
	_, _ = fmt.Fprint(out, story)
	if r.Violation == nil {
		_, _ = fmt.Fprintln(out, "no violation")
		return 0
	}
	small := sim.Shrink(p)
	if len(small.Faults) < len(p.Faults) {
		story, _ = sim.Tell(small)
		_, _ = fmt.Fprintf(out, "\nWith fewer faults:\n%s", story)
	}
	return 1
}

// walk is one series of schedules.
type walk struct {
	plan  func(seed uint64) sim.Plan
	until time.Time
	stop  int

	mu         sync.Mutex
	next, last uint64
	total      sim.Totals
	violations int
}

func (w *walk) run(out io.Writer, workers int) int {
	began := time.Now()
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { w.work(out) })
	}
	group.Wait()
	took := time.Since(began)
	_, _ = fmt.Fprintf(out, "%s\n%.0f schedules per second, %s\n", w.total.String(), float64(w.total.Schedules)/took.Seconds(), took.Round(time.Second))
	if w.violations > 0 {
		return 1
	}
	return 0
}

func (w *walk) work(out io.Writer) {
	sets := &sim.Sets{}
	for {
		w.mu.Lock()
		seed := w.next
		done := seed >= w.last || w.violations >= w.stop || seed%64 == 0 && time.Now().After(w.until)
		w.next++
		w.mu.Unlock()
		if done {
			return
		}
		p := w.plan(seed)
		r := sim.Run(p, sets, nil)
		w.mu.Lock()
		w.total.Add(p, r)
		if r.Violation != nil {
			w.violations++
			_, _ = fmt.Fprintf(out, "seed %d: %s\n", seed, r.Violation)
		}
		w.mu.Unlock()
	}
}
