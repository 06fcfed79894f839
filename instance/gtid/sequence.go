package gtid

import (
	"bytes"
	"slices"
	"strings"
)

// uuid is a server uuid in binary form. Its byte order is the order in which servers print their sets.
type uuid [16]byte

// sequence is what one server numbered under one tag. The empty tag is the untagged sequence; a tag is in lower case.
type sequence struct {
	source    uuid
	tag       string
	intervals []interval
}

func compareSequences(a, b sequence) int {
	if c := bytes.Compare(a.source[:], b.source[:]); c != 0 {
		return c
	}
	return strings.Compare(a.tag, b.tag)
}

// containsSequences relies on both lists being in order.
func containsSequences(a, b []sequence) bool {
	i := 0
	for j := range b {
		for i < len(a) && compareSequences(a[i], b[j]) < 0 {
			i++
		}
		if i == len(a) || compareSequences(a[i], b[j]) != 0 || !containsIntervals(a[i].intervals, b[j].intervals) {
			return false
		}
	}
	return true
}

func equalSequences(a, b []sequence) bool {
	return slices.EqualFunc(a, b, func(x, y sequence) bool {
		return compareSequences(x, y) == 0 && slices.Equal(x.intervals, y.intervals)
	})
}

// combine walks both lists in order and keeps what op leaves of each sequence; a sequence that one side lacks is
// passed as nil.
func combine(a, b []sequence, op func(a, b []interval) []interval) []sequence {
	var out []sequence
	keep := func(s sequence, x, y []interval) {
		if s.intervals = op(x, y); len(s.intervals) > 0 {
			out = append(out, s)
		}
	}
	for len(a) > 0 || len(b) > 0 {
		switch c := order(a, b); {
		case c < 0:
			keep(a[0], a[0].intervals, nil)
			a = a[1:]
		case c > 0:
			keep(b[0], nil, b[0].intervals)
			b = b[1:]
		default:
			keep(a[0], a[0].intervals, b[0].intervals)
			a, b = a[1:], b[1:]
		}
	}
	return out
}

// order compares the heads of two lists of which at least one is not empty.
func order(a, b []sequence) int {
	switch {
	case len(b) == 0:
		return -1
	case len(a) == 0:
		return 1
	}
	return compareSequences(a[0], b[0])
}
