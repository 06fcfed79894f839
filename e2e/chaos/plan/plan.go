// Package plan decides which faults a run injects: a seed gives a sequence of
// rounds, always the same one.
//
// It is pure: no clock, no chance but the seed's, no input and output. What must
// stay true: the same seed and the same kinds give the same rounds, on every
// machine; every kind comes up about as often as any other; two faults that would
// undo each other are never in one round.
package plan

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Target says whom a fault is for, in terms of a round's beginning: names follow only when it is known who the primary is.
type Target string

// Targets. First and Second are the replicas in the order of their names; Everybody is said of what has no instance.
const (
	Primary   Target = "primary"
	First     Target = "first replica"
	Second    Target = "second replica"
	Everybody Target = "everybody"
)

// Fault is one thing that goes wrong.
type Fault struct {
	Kind   Kind
	Target Target
	// At is when it begins, counted from the beginning of the round.
	At time.Duration
	// For is how long it lasts until it is repaired; 0 for what is over at once.
	For time.Duration
	// Seed is of the fault's own chance.
	Seed uint64
}

func (f Fault) String() string {
	s := fmt.Sprintf("+%.1f s %s", f.At.Seconds(), f.Kind)
	if f.Target != Everybody {
		s += " of the " + string(f.Target)
	}
	if f.For > 0 {
		s += fmt.Sprintf(" for %.1f s", f.For.Seconds())
	}
	return s
}

// Round is a group of faults that may overlap. All is repaired after it.
type Round struct {
	Number int
	Faults []Fault
}

func (r Round) String() string {
	var parts []string
	for _, f := range r.Faults {
		parts = append(parts, f.String())
	}
	return fmt.Sprintf("round %d: %s", r.Number, strings.Join(parts, "; "))
}

// Plan gives out one round after the other.
type Plan struct {
	chance *rand.Rand
	kinds  []Kind
	deck   []Kind
	round  int
}

// New is the plan of a seed with these kinds, in any order.
func New(seed uint64, kinds []Kind) *Plan {
	sorted := slices.Clone(kinds)
	slices.Sort(sorted)
	return &Plan{chance: rand.New(rand.NewPCG(seed, 0)), kinds: slices.Compact(sorted)}
}

// Next is the following round, of one to three faults and, where these alone show little, one more.
func (p *Plan) Next() Round {
	p.round++
	r := Round{Number: p.round}
	wanted := 1 + p.pick(2, 2, 1)
	var aside []Kind
	for tries := 2 * len(p.kinds); tries > 0 && len(r.Faults) < wanted; tries-- {
		kind := p.draw()
		f := p.fault(kind, len(r.Faults) == 0)
		if slices.ContainsFunc(r.Faults, func(g Fault) bool { return clash(f, g) }) {
			aside = append(aside, kind)
			continue
		}
		r.Faults = append(r.Faults, f)
	}
	p.deck = append(aside, p.deck...)
	if company := p.company(r.Faults); company != nil {
		r.Faults = append(r.Faults, *company)
	}
	slices.SortStableFunc(r.Faults, func(a, b Fault) int { return int(a.At - b.At) })
	return r
}

// draw takes a card from the deck; an empty deck is made anew from one card of each kind.
func (p *Plan) draw() Kind {
	if len(p.deck) == 0 {
		p.deck = slices.Clone(p.kinds)
		p.chance.Shuffle(len(p.deck), func(i, j int) { p.deck[i], p.deck[j] = p.deck[j], p.deck[i] })
	}
	kind := p.deck[0]
	p.deck = p.deck[1:]
	return kind
}

// latest is how long after a round's beginning a fault may begin.
const latest = 12 * time.Second

func tenths(d time.Duration) time.Duration { return d.Truncate(100 * time.Millisecond) }

func (p *Plan) fault(kind Kind, first bool) Fault {
	about := Kinds[kind]
	f := Fault{Kind: kind, Target: about.targets[p.pick(about.weights...)], Seed: p.chance.Uint64()}
	if !first {
		x := p.chance.Float64() // squared: rather soon after the first, while that is being dealt with
		f.At = tenths(time.Duration(x * x * float64(latest)))
	}
	if about.longest > 0 {
		f.For = tenths(about.shortest + time.Duration(p.chance.Float64()*float64(about.longest-about.shortest)))
	}
	return f
}

// company is a change of primary for a round with a fault that only matters during one, and none that may bring it.
func (p *Plan) company(faults []Fault) *Fault {
	idle := slices.ContainsFunc(faults, func(f Fault) bool { return Kinds[f.Kind].idle })
	busy := slices.ContainsFunc(faults, func(f Fault) bool { return f.Target == Primary || Kinds[f.Kind].area == "switchover" })
	if !idle || busy {
		return nil
	}
	choices := []Kind{Switchover, KillServer, DeletePod, KillNode}
	kind := choices[p.pick(3, 2, 1, 1)]
	if !slices.Contains(p.kinds, kind) {
		kind = Switchover
	}
	f := p.fault(kind, false)
	if kind != Switchover {
		f.Target = Primary
	}
	return &f
}

// pick is an index, each with a chance in proportion to its weight.
func (p *Plan) pick(weights ...int) int {
	sum := 0
	for _, w := range weights {
		sum += w
	}
	n := p.chance.IntN(sum)
	for i, w := range weights {
		if n < w {
			return i
		}
		n -= w
	}
	return len(weights) - 1
}

// clash tells whether two faults would undo or hide each other.
func clash(f, g Fault) bool {
	if f.Kind == g.Kind {
		return true
	}
	a, b := Kinds[f.Kind].area, Kinds[g.Kind].area
	if a == "" || a != b {
		return false
	}
	return f.Target == g.Target
}
