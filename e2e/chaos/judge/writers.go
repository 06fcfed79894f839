// Package judge decides from what was recorded whether a run kept its promises.
//
// It is pure: records in, violations out. What must stay true: it accuses nobody
// without proof, whatever the order in which answers arrive; each of its tests
// shows a record that it finds fault with.
package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Write is one that a server acknowledged: it was done at some moment between the two times.
type Write struct {
	Instance    string
	Sent, Acked time.Time
}

// Term is a generation with the instance that had the role in it.
type Term struct {
	Generation int64
	Instance   string
}

// Reading is one answer of the API server about the generation: it was true at some moment between the two times.
type Reading struct {
	Began, Ended time.Time
	Generation   int64
}

// Clash is an acknowledged write that its instance cannot have done while it alone had the role.
type Clash struct {
	Write Write
	// Overlap is for how long, at least, another instance had been acknowledging writes in a later generation when
	// this one was sent; 0 when the proof is another.
	Overlap time.Duration
	Why     string
}

// Writers looks for two writers. There was one at a time exactly if each write can be given one of its instance's
// terms such that: of two writes, of which one was acknowledged before the other was sent, the first has no
// later term; no write that was sent after a generation had been read has an earlier term; none that was
// acknowledged before a reading began has a later term than what was read. Each write gets the earliest term that this
// allows; a write for which there is none is a clash. terms are in ascending order.
func Writers(terms []Term, readings []Reading, writes []Write) []Clash {
	bySent, byAcked := slices.Clone(writes), make([]assigned, 0, len(writes))
	slices.SortFunc(bySent, func(a, b Write) int { return a.Sent.Compare(b.Sent) })
	f := newFloor(readings)
	var clashes []Clash
	for _, w := range bySent {
		// Who was acknowledged before this was sent was sent before, too, and has its term.
		f.raise(&byAcked, w.Sent)
		ceiling := ceilingOf(readings, w.Acked)
		i := slices.IndexFunc(terms, func(t Term) bool { return t.Instance == w.Instance && t.Generation >= f.generation })
		if i < 0 || terms[i].Generation > ceiling {
			clashes = append(clashes, f.clash(terms, w, ceiling))
			continue
		}
		insert(&byAcked, assigned{w, terms[i].Generation})
	}
	return clashes
}

// Overlap is the time for which two instances provably acknowledged writes, in all.
func Overlap(clashes []Clash) time.Duration {
	var longest = map[string]time.Duration{}
	for _, c := range clashes {
		longest[c.Write.Instance] = max(longest[c.Write.Instance], c.Overlap)
	}
	var sum time.Duration
	for _, d := range longest {
		sum += d
	}
	return sum
}

type assigned struct {
	write Write
	term  int64
}

// insert keeps a list in the order of acknowledgement. Most writes belong near its end.
func insert(list *[]assigned, a assigned) {
	i := len(*list)
	for i > 0 && (*list)[i-1].write.Acked.After(a.write.Acked) {
		i--
	}
	*list = slices.Insert(*list, i, a)
}

// floor is the earliest term that a write can have, and who proves it.
type floor struct {
	generation int64
	readings   []Reading // by their end, those that are still to come
	// first is, of each generation, the first write that was acknowledged in it.
	first map[int64]Write
	read  *Reading
}

func newFloor(readings []Reading) *floor {
	sorted := slices.Clone(readings)
	slices.SortFunc(sorted, func(a, b Reading) int { return a.Ended.Compare(b.Ended) })
	return &floor{readings: sorted, first: map[int64]Write{}}
}

// raise takes in what was known before t.
func (f *floor) raise(pending *[]assigned, t time.Time) {
	for len(f.readings) > 0 && f.readings[0].Ended.Before(t) {
		if r := f.readings[0]; r.Generation > f.generation {
			f.generation, f.read = r.Generation, &r
		}
		f.readings = f.readings[1:]
	}
	for len(*pending) > 0 && (*pending)[0].write.Acked.Before(t) {
		a := (*pending)[0]
		f.generation = max(f.generation, a.term)
		if _, known := f.first[a.term]; !known {
			f.first[a.term] = a.write
		}
		*pending = (*pending)[1:]
	}
}

// ceilingOf is the generation of the first reading that began after t.
func ceilingOf(readings []Reading, t time.Time) int64 {
	i, _ := slices.BinarySearchFunc(readings, t, func(r Reading, t time.Time) int { return r.Began.Compare(t) })
	if i == len(readings) {
		return 1 << 62
	}
	return readings[i].Generation
}

// clash says why a write has no term.
func (f *floor) clash(terms []Term, w Write, ceiling int64) Clash {
	c := Clash{Write: w}
	own := int64(0)
	for _, t := range terms {
		if t.Instance == w.Instance && t.Generation <= f.generation {
			own = t.Generation
		}
	}
	var proof *Write
	for generation, first := range f.first {
		if generation > own && (proof == nil || first.Acked.Before(proof.Acked)) {
			proof = &first
		}
	}
	switch {
	case proof != nil:
		c.Overlap = w.Sent.Sub(proof.Acked)
		c.Why = fmt.Sprintf("%s acknowledged a write that was sent %s after %s had acknowledged one in a later generation",
			w.Instance, c.Overlap.Round(time.Millisecond), proof.Instance)
	case f.read != nil && f.generation > own:
		c.Why = fmt.Sprintf("%s acknowledged a write that was sent %s after generation %d was known, and had no role in it up to generation %d",
			w.Instance, w.Sent.Sub(f.read.Ended).Round(time.Millisecond), f.generation, min(ceiling, last(terms)))
	default:
		c.Why = fmt.Sprintf("%s acknowledged a write in generation %d or %d, and had the role in neither", w.Instance, f.generation, ceiling)
	}
	return c
}

func last(terms []Term) int64 {
	if len(terms) == 0 {
		return 0
	}
	return slices.MaxFunc(terms, func(a, b Term) int { return cmp.Compare(a.Generation, b.Generation) }).Generation
}
