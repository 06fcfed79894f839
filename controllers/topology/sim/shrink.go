package sim

import (
	"slices"
	"time"
)

// Shrink takes faults away from a plan, and makes those that stay short, as long as the same invariant is
// violated. A plan without a violation comes back as it is.
func Shrink(p Plan) Plan {
	sets := &Sets{}
	first := Run(p, sets, nil).Violation
	if first == nil {
		return p
	}
	still := func(q Plan) bool {
		v := Run(q, sets, nil).Violation
		return v != nil && v.Invariant == first.Invariant
	}
	for changed := true; changed; {
		changed = false
		for n := range p.Faults {
			q := p
			q.Faults = slices.Delete(slices.Clone(p.Faults), n, n+1)
			if still(q) {
				p, changed = q, true
				break
			}
		}
	}
	for n := range p.Faults {
		for _, d := range []time.Duration{0, time.Second, 5 * time.Second} {
			q := p
			q.Faults = slices.Clone(p.Faults)
			q.Faults[n].For = d
			if d < p.Faults[n].For && still(q) {
				p = q
				break
			}
		}
	}
	return p
}
