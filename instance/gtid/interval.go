package gtid

// maxNumber is the largest transaction number that a MySQL server assigns, 2^63-2.
const maxNumber = 1<<63 - 2

// interval is a run of transaction numbers, both ends included, 1 <= first <= last <= maxNumber.
type interval struct {
	first, last uint64
}

// containsIntervals reports whether every number in b is in a. Since intervals of a normalised list do not touch,
// each interval of b has to lie within a single one of a.
func containsIntervals(a, b []interval) bool {
	i := 0
	for _, want := range b {
		for i < len(a) && a[i].last < want.first {
			i++
		}
		if i == len(a) || a[i].first > want.first || a[i].last < want.last {
			return false
		}
	}
	return true
}

// appendInterval adds iv behind list, whose intervals start no later than iv, and joins the two ends where they
// overlap or touch.
func appendInterval(list []interval, iv interval) []interval {
	if n := len(list); n > 0 && iv.first <= list[n-1].last+1 {
		list[n-1].last = max(list[n-1].last, iv.last)
		return list
	}
	return append(list, iv)
}

func unionIntervals(a, b []interval) []interval {
	switch {
	case len(a) == 0:
		return b
	case len(b) == 0:
		return a
	}
	out := make([]interval, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		if a[0].first <= b[0].first {
			out, a = appendInterval(out, a[0]), a[1:]
		} else {
			out, b = appendInterval(out, b[0]), b[1:]
		}
	}
	for _, iv := range a {
		out = appendInterval(out, iv)
	}
	for _, iv := range b {
		out = appendInterval(out, iv)
	}
	return out
}

func minusIntervals(a, b []interval) []interval {
	if len(b) == 0 {
		return a
	}
	var out []interval
	for _, left := range a {
		for len(b) > 0 && b[0].last < left.first {
			b = b[1:]
		}
		// b[0] may reach into the next interval of a as well, so the scan here does not consume it.
		rest := b
		for len(rest) > 0 && rest[0].first <= left.last {
			if rest[0].first > left.first {
				out = append(out, interval{left.first, rest[0].first - 1})
			}
			left.first = rest[0].last + 1
			rest = rest[1:]
		}
		if left.first <= left.last {
			out = append(out, left)
		}
	}
	return out
}

func intersectIntervals(a, b []interval) []interval {
	var out []interval
	for len(a) > 0 && len(b) > 0 {
		first, last := max(a[0].first, b[0].first), min(a[0].last, b[0].last)
		if first <= last {
			out = append(out, interval{first, last})
		}
		if a[0].last < b[0].last {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return out
}

// countIntervals cannot overflow for one sequence: its numbers are at most maxNumber.
func countIntervals(list []interval) uint64 {
	var n uint64
	for _, iv := range list {
		n += iv.last - iv.first + 1
	}
	return n
}
