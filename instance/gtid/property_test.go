package gtid_test

import (
	"fmt"
	"math/bits"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cnmsql.co/operator/instance/gtid"
)

// oracle is the dumb twin of a set: one bit for each of the numbers 1 to 64 of a few sequences.
type oracle [6]uint64

var sequenceNames = [len(oracle{})]string{a, a + ":x", a + ":y_2", b, b + ":x", "ffffffff-ffff-ffff-ffff-ffffffffffff"}

// draw returns an oracle and the same set parsed from text in random order, with overlaps and repetitions.
func draw(t *rapid.T, label string) (oracle, gtid.Set) {
	var o oracle
	var elements []string
	for range rapid.IntRange(0, 12).Draw(t, label+" elements") {
		i := rapid.IntRange(0, len(o)-1).Draw(t, "sequence")
		first := rapid.IntRange(1, 64).Draw(t, "first")
		last := min(64, first+rapid.IntRange(0, 20).Draw(t, "length"))
		for n := first; n <= last; n++ {
			o[i] |= 1 << (n - 1)
		}
		name := sequenceNames[i]
		if rapid.Bool().Draw(t, "upper case") {
			name = strings.ToUpper(name)
		}
		elements = append(elements, fmt.Sprintf("%s:%d-%d", name, first, last))
	}
	s, err := gtid.Parse(strings.Join(elements, ",\n"))
	if err != nil {
		t.Fatal(err)
	}
	return o, s
}

func (o oracle) with(p oracle, op func(x, y uint64) uint64) oracle {
	for i := range o {
		o[i] = op(o[i], p[i])
	}
	return o
}

func (o oracle) count() (n uint64) {
	for _, word := range o {
		n += uint64(bits.OnesCount64(word))
	}
	return n
}

// set lists every number by itself.
func (o oracle) set(t *rapid.T) gtid.Set {
	var elements []string
	for i, word := range o {
		for n := range 64 {
			if word&(1<<n) != 0 {
				elements = append(elements, fmt.Sprintf("%s:%d", sequenceNames[i], n+1))
			}
		}
	}
	s, err := gtid.Parse(strings.Join(elements, ","))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSetsAgreeWithBitsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ox, x := draw(t, "x")
		oy, y := draw(t, "y")
		before := x.String() + " " + y.String()
		same := func(what string, got gtid.Set, o oracle) {
			expected := o.set(t)
			if !got.Equal(expected) || got.String() != expected.String() || got.Count() != o.count() {
				t.Errorf("%s = %q (%d), want %q (%d)", what, got, got.Count(), expected, o.count())
			}
		}
		same("x", x, ox)
		same("union", x.Union(y), ox.with(oy, func(p, q uint64) uint64 { return p | q }))
		same("difference", x.Minus(y), ox.with(oy, func(p, q uint64) uint64 { return p &^ q }))
		same("intersection", x.Intersect(y), ox.with(oy, func(p, q uint64) uint64 { return p & q }))
		inside := oy.with(ox, func(p, q uint64) uint64 { return p &^ q }) == oracle{}
		if x.Contains(y) != inside {
			t.Errorf("%q contains %q: %v, want %v", x, y, x.Contains(y), inside)
		}
		if x.Equal(y) != (ox == oy) {
			t.Errorf("%q equals %q: %v", x, y, x.Equal(y))
		}
		same("by A", x.BySource(a), oracle{ox[0], ox[1], ox[2]})
		if before != x.String()+" "+y.String() {
			t.Error("an operation changed its operands")
		}
	})
}

// anySet draws MySQL sets, MariaDB positions and unions of both.
func anySet(t *rapid.T, label string) gtid.Set {
	_, s := draw(t, label)
	for range rapid.IntRange(0, 3).Draw(t, label+" positions") {
		p := fmt.Sprintf("%d-%d-%d", rapid.IntRange(0, 2).Draw(t, "domain"), rapid.IntRange(1, 3).Draw(t, "server"), rapid.IntRange(1, 4).Draw(t, "number"))
		m, err := gtid.ParseMariaDB(p)
		if err != nil {
			t.Fatal(err)
		}
		s = s.Union(m)
	}
	return s
}

func TestSetsOfBothKindsKeepTheLawsOfSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x, y, z := anySet(t, "x"), anySet(t, "y"), anySet(t, "z")
		law := func(name string, holds bool) {
			if !holds {
				t.Errorf("%s does not hold for x=%q y=%q z=%q", name, x, y, z)
			}
		}
		law("union contains both", x.Union(y).Contains(x) && x.Union(y).Contains(y))
		law("union commutes", x.Union(y).Equal(y.Union(x)))
		law("union is associative", x.Union(y).Union(z).Equal(x.Union(y.Union(z))))
		law("union is the least of what contains both", !z.Contains(x) || !z.Contains(y) || z.Contains(x.Union(y)))
		law("intersection is in both", x.Contains(x.Intersect(y)) && y.Contains(x.Intersect(y)))
		law("intersection commutes", x.Intersect(y).Equal(y.Intersect(x)))
		law("containment is an empty difference", x.Contains(y) == y.Minus(x).IsEmpty())
		law("containment is a union that adds nothing", x.Contains(y) == x.Union(y).Equal(x))
		law("containment is transitive", !x.Contains(y) || !y.Contains(z) || x.Contains(z))
		law("containment both ways is equality", (x.Contains(y) && y.Contains(x)) == x.Equal(y))
		law("difference and other side give the union", x.Minus(y).Union(y).Equal(x.Union(y)))
		law("difference is a part", x.Contains(x.Minus(y)))
		law("counting nothing", (x.Count() == 0) == x.IsEmpty())
		var back gtid.Set
		law("text survives", back.UnmarshalText([]byte(x.String())) == nil && back.Equal(x))
	})
}
