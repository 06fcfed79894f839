package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
)

// schedules is how many random ones each test of many runs.
const schedules = 300

func TestRandomSchedulesViolateNothing(t *testing.T) {
	sets := &Sets{}
	for seed := range uint64(schedules) {
		p := Random(seed, nil)
		if r := Run(p, sets, nil); r.Violation != nil {
			story, _ := Tell(Shrink(p))
			t.Fatalf("seed %d: %s\n%s", seed, r.Violation, story)
		}
	}
}

func TestAPlanAlwaysRunsTheSameWay(t *testing.T) {
	for seed := range uint64(20) {
		a, _ := Tell(Random(seed, nil))
		b, _ := Tell(Random(seed, nil))
		if a != b {
			t.Fatalf("seed %d told two stories:\n%s\n\n%s", seed, a, b)
		}
	}
}

// Breadth first: no fault, then every single fault on every instance at every moment of a grid that is finer than
// each of the shipped periods.
func TestEverySingleFaultAtEveryMomentViolatesNothing(t *testing.T) {
	sets := &Sets{}
	n := 0
	for _, cfg := range []Config{{Instances: 2, SemiSync: 1}, {Instances: 3, SemiSync: 1}} {
		if r := Run(Plan{Config: cfg}, sets, nil); r.Violation != nil {
			t.Fatalf("without any fault: %s", r.Violation)
		}
		for _, kind := range append(slices.Clone(Kinds), TearDisk) {
			for a := range cfg.Instances {
				for _, length := range []time.Duration{time.Second, 25 * time.Second} {
					for at := 500 * time.Millisecond; at <= 5500*time.Millisecond; at += step {
						p := Plan{Config: cfg, Seed: 1, Faults: []Fault{{Kind: kind, A: a, B: a + 1, At: at, For: length}}}
						n++
						if r := Run(p, sets, nil); r.Violation != nil {
							story, _ := Tell(p)
							t.Fatalf("%s: %s\n%s", p.Faults[0], r.Violation, story)
						}
					}
				}
			}
		}
	}
	t.Logf("%d schedules", n)
}

// step is the grid of moments.
const step = 1250 * time.Millisecond

// Every pair of faults takes minutes (make sim PAIRS=1); each run of the tests takes some of them, evenly spread.
func TestPairsOfFaultsViolateNothing(t *testing.T) {
	sets := &Sets{}
	n, ran := 0, 0
	for p := range Pairs() {
		if n++; n%pairsEvery != 0 {
			continue
		}
		ran++
		if r := Run(p, sets, nil); r.Violation != nil {
			story, _ := Tell(p)
			t.Fatalf("%s and %s: %s\n%s", p.Faults[0], p.Faults[1], r.Violation, story)
		}
	}
	t.Logf("%d of %d pairs", ran, n)
}

// pairsEvery shares no factor with the sizes of the grids.
const pairsEvery = 139

func TestEveryMutantIsFound(t *testing.T) {
	for _, m := range Mutants {
		t.Run(m.Name, func(t *testing.T) {
			sets := &Sets{}
			for seed := range uint64(killWithin) {
				p := m.Plan(m.from + seed)
				r := Run(p, sets, nil)
				if r.Violation == nil {
					continue
				}
				p.Config.Rules = nil
				if Run(p, sets, nil).Violation == nil {
					t.Logf("found in schedule %d: %s", m.from+seed+1, r.Violation)
					return
				}
			}
			t.Errorf("%d schedules did not find that the guard is missing: %s", killWithin, m.Name)
		})
	}
}

// killWithin is in how many schedules each mutant must be found.
const killWithin = 5000

func TestAStoryIsNumberedAndNamesTimeAndActor(t *testing.T) {
	story, r := Tell(Plan{Config: Config{Instances: 3, SemiSync: 1}, Seed: 7, Faults: []Fault{{Kind: KillServer, At: time.Second}}})
	if r.Violation != nil {
		t.Fatal(r.Violation)
	}
	var number int
	var at float64
	var who string
	lines := 0
	for line := range strings.Lines(story) {
		if n, _ := fmt.Sscanf(line, "%d %fs %s", &number, &at, &who); n == 3 {
			if lines++; number != lines {
				t.Fatalf("line %d has the number %d: %s", lines, number, line)
			}
		}
	}
	if lines < 20 {
		t.Errorf("only %d lines:\n%s", lines, story)
	}
}

func TestAnAnswerToAnAcceptedLossTakesItsAnnotationAway(t *testing.T) {
	const asked = "c1-9="
	w := newWorld(Config{Instances: 2}, rand.New(rand.NewPCG(1, 1)), &Sets{}, nil)
	w.api.annotate(map[string]*string{api.AnnotationAcceptLoss: new(asked)})
	if w.api.clearAnnotation(api.AnnotationAcceptLoss, "c1-2=") {
		t.Error("another one was taken away")
	}
	for w.step(20 * time.Second) {
	}
	if left, there := w.api.cluster.c.Annotations[api.AnnotationAcceptLoss]; there {
		t.Errorf("%q is still there", left)
	}
}

func TestAnActionThatIsNotModelledFailsLoudly(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it counted as done")
		}
	}()
	w := newWorld(Config{Instances: 2}, rand.New(rand.NewPCG(1, 1)), &Sets{}, nil)
	w.op.do(core.Action{Kind: "something new"}, func(bool) {})
}
