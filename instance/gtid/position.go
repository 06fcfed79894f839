package gtid

import (
	"cmp"
	"slices"
)

// position is a MariaDB GTID, domain-server-number. It stands for itself and all that came before it in its domain.
// A list of positions is in order of domain and server and holds one per domain, except for the union of two
// histories that end in the same number on different servers, which keeps both.
type position struct {
	domain, server uint32
	number         uint64
}

func comparePositions(a, b position) int {
	return cmp.Or(cmp.Compare(a.domain, b.domain), cmp.Compare(a.server, b.server))
}

// covers reports whether a history that ends in p holds q. Two servers that gave the same number to different
// transactions have diverged, and neither covers the other. A domain's history is taken to be one line otherwise: that
// is what gtid_strict_mode enforces, and it is all that a position can tell.
func (p position) covers(q position) bool {
	return p.domain == q.domain && (p.number > q.number || p == q)
}

func coversAny(list []position, p position) bool {
	for i := range list {
		if list[i].covers(p) {
			return true
		}
	}
	return false
}

func containsPositions(a, b []position) bool {
	for i := range b {
		if !coversAny(a, b[i]) {
			return false
		}
	}
	return true
}

func unionPositions(a, b []position) []position {
	if len(b) == 0 {
		return a
	}
	all := slices.Concat(a, b)
	slices.SortFunc(all, comparePositions)
	all = slices.Compact(all)
	latest := func(p position) bool {
		return !slices.ContainsFunc(all, func(q position) bool { return q != p && q.covers(p) })
	}
	return filter(all, latest)
}

func minusPositions(a, b []position) []position {
	if len(b) == 0 {
		return a
	}
	return filter(a, func(p position) bool { return !coversAny(b, p) })
}

// intersectPositions keeps each position that the other side covers. Of two diverged ends nothing is kept: who wrote
// the number before them is not known.
func intersectPositions(a, b []position) []position {
	return unionPositions(
		filter(a, func(p position) bool { return coversAny(b, p) }),
		filter(b, func(p position) bool { return coversAny(a, p) }),
	)
}

// filter returns nil rather than an empty list, so that an empty set is the zero value.
func filter(list []position, keep func(position) bool) []position {
	var out []position
	for _, p := range list {
		if keep(p) {
			out = append(out, p)
		}
	}
	return out
}
