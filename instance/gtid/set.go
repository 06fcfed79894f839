package gtid

import (
	"math"
	"slices"
)

// Set is an immutable set of transactions. The zero value is the empty set.
type Set struct {
	sequences []sequence // MySQL
	positions []position // MariaDB
}

// IsEmpty reports whether the set holds no transaction.
func (s Set) IsEmpty() bool { return len(s.sequences) == 0 && len(s.positions) == 0 }

// IsZero is IsEmpty under the name that the JSON option omitzero looks for.
func (s Set) IsZero() bool { return s.IsEmpty() }

// Contains reports whether s holds every transaction of other. Every set contains the empty one. A MySQL set never
// contains any part of a MariaDB position, nor the reverse. It does not allocate.
func (s Set) Contains(other Set) bool {
	return containsSequences(s.sequences, other.sequences) && containsPositions(s.positions, other.positions)
}

// Equal reports whether both hold the same transactions. It does not allocate.
func (s Set) Equal(other Set) bool {
	return equalSequences(s.sequences, other.sequences) && slices.Equal(s.positions, other.positions)
}

// Union returns what s or other holds. Of two MariaDB positions in one domain the later one stays; two that end in the
// same number on different servers have diverged, both stay, and the text of the result is accepted by no server.
func (s Set) Union(other Set) Set {
	return Set{
		sequences: combine(s.sequences, other.sequences, unionIntervals),
		positions: unionPositions(s.positions, other.positions),
	}
}

// Minus returns what s holds and other lacks; it is empty exactly when other contains s. A MariaDB position that other
// does not cover is returned as it is, since a position cannot say where the difference starts.
func (s Set) Minus(other Set) Set {
	return Set{
		sequences: combine(s.sequences, other.sequences, minusIntervals),
		positions: minusPositions(s.positions, other.positions),
	}
}

// Intersect returns what both hold.
func (s Set) Intersect(other Set) Set {
	return Set{
		sequences: combine(s.sequences, other.sequences, intersectIntervals),
		positions: intersectPositions(s.positions, other.positions),
	}
}

// BySource returns the transactions that the MySQL server with this server_uuid numbered, under all tags. Text that is
// no uuid names no server, so the result is empty. It is empty for MariaDB as well: a position names the author of the
// last transaction only.
func (s Set) BySource(serverUUID string) Set {
	source, err := parseUUID(serverUUID)
	if err != nil {
		return Set{}
	}
	var out Set
	for _, q := range s.sequences {
		if q.source == source {
			out.sequences = append(out.sequences, q)
		}
	}
	return out
}

// WithoutSource returns the transactions that other servers than this one numbered. Text that is no uuid names no server,
// so the set is returned as it is; so is a MariaDB position.
func (s Set) WithoutSource(serverUUID string) Set {
	source, err := parseUUID(serverUUID)
	if err != nil || !slices.ContainsFunc(s.sequences, func(q sequence) bool { return q.source == source }) {
		return s
	}
	out := Set{positions: s.positions}
	for _, q := range s.sequences {
		if q.source != source {
			out.sequences = append(out.sequences, q)
		}
	}
	return out
}

// Last returns the highest number that the MySQL server with this server_uuid gave without a tag; 0 when there is none.
func (s Set) Last(serverUUID string) uint64 {
	list := s.untagged(serverUUID)
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1].last
}

// FirstGap returns the lowest number below Last that the set lacks; 0 when it lacks none.
func (s Set) FirstGap(serverUUID string) uint64 {
	list := s.untagged(serverUUID)
	switch {
	case len(list) > 0 && list[0].first > 1:
		return 1
	case len(list) > 1:
		return list[0].last + 1
	}
	return 0
}

// untagged are the intervals that a source numbered without a tag.
func (s Set) untagged(serverUUID string) []interval {
	source, err := parseUUID(serverUUID)
	if err != nil {
		return nil
	}
	for i := range s.sequences {
		if q := &s.sequences[i]; q.source == source && q.tag == "" {
			return q.intervals
		}
	}
	return nil
}

// Count returns the number of transactions, at most math.MaxUint64. For MariaDB it is the sum of the domains' last
// numbers, so a.Minus(b).Count() is an upper bound there and exact for MySQL.
func (s Set) Count() uint64 {
	var n uint64
	add := func(m uint64) {
		if m > math.MaxUint64-n {
			m = math.MaxUint64 - n
		}
		n += m
	}
	for i := range s.sequences {
		add(countIntervals(s.sequences[i].intervals))
	}
	for i := range s.positions {
		add(s.positions[i].number)
	}
	return n
}
