package gtid

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

const (
	blanks = " \t\n\v\f\r"
	maxTag = 32 // characters
	quoted = 80 // bytes of malformed text that an error repeats
)

// Parse reads a MySQL set such as the text of gtid_executed: elements of the form uuid:interval[:interval|:tag]...,
// separated by commas, with blanks and line breaks anywhere between the parts, in upper or lower case. A tag applies to
// the intervals after it, up to the next tag or comma. A source, a tag or a number may occur more than once. Empty
// elements are skipped, as the server does; an empty text is the empty set. Everything else is an error: an interval
// that is reversed, open, zero or above 2^63-2, a source or tag without an interval, a MariaDB position.
func Parse(text string) (Set, error) {
	var list []sequence
	for element := range strings.SplitSeq(text, ",") {
		element = strings.Trim(element, blanks)
		if element == "" {
			continue
		}
		var err error
		if list, err = parseElement(list, element); err != nil {
			return Set{}, fmt.Errorf("parsing GTID set element %s: %w", excerpt(element), err)
		}
	}
	return Set{sequences: normalise(list)}, nil
}

// parseElement appends one sequence for each run of intervals under one tag.
func parseElement(list []sequence, element string) ([]sequence, error) {
	name, rest, found := strings.Cut(element, ":")
	source, err := parseUUID(strings.Trim(name, blanks))
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errors.New("no interval after the server uuid")
	}
	current := sequence{source: source}
	for part := range strings.SplitSeq(rest, ":") {
		part = strings.Trim(part, blanks)
		if tag, ok := parseTag(part); ok {
			if len(current.intervals) == 0 && current.tag != "" {
				return nil, fmt.Errorf("no interval after the tag %q", current.tag)
			}
			list = append(list, current)
			current = sequence{source: source, tag: tag}
			continue
		}
		iv, err := parseInterval(part)
		if err != nil {
			return nil, err
		}
		current.intervals = append(current.intervals, iv)
	}
	if len(current.intervals) == 0 {
		return nil, fmt.Errorf("no interval after the tag %q", current.tag)
	}
	return append(list, current), nil
}

// normalise brings sequences and intervals in order and joins what belongs together.
func normalise(list []sequence) []sequence {
	slices.SortStableFunc(list, compareSequences)
	var out []sequence
	for _, q := range list {
		if n := len(out); n > 0 && compareSequences(out[n-1], q) == 0 {
			out[n-1].intervals = append(out[n-1].intervals, q.intervals...)
		} else if len(q.intervals) > 0 {
			out = append(out, q)
		}
	}
	for i := range out {
		out[i].intervals = joinIntervals(out[i].intervals)
	}
	return out
}

func joinIntervals(list []interval) []interval {
	slices.SortFunc(list, func(a, b interval) int {
		switch {
		case a.first < b.first:
			return -1
		case a.first > b.first:
			return 1
		}
		return 0
	})
	joined := list[:0]
	for _, iv := range list {
		joined = appendInterval(joined, iv)
	}
	return slices.Clip(joined)
}

// parseUUID accepts the form with dashes only, the one that servers print.
func parseUUID(text string) (uuid, error) {
	var u uuid
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return u, fmt.Errorf("%s is no server uuid", excerpt(text))
	}
	digits := []byte(text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:])
	if _, err := hex.Decode(u[:], digits); err != nil {
		return uuid{}, fmt.Errorf("%s is no server uuid", excerpt(text))
	}
	return u, nil
}

// parseTag returns the tag in lower case. Intervals start with a digit, so the two cannot be confused.
func parseTag(text string) (string, bool) {
	if text == "" || len(text) > maxTag || text[0] >= '0' && text[0] <= '9' {
		return "", false
	}
	for i := range len(text) {
		c := text[i] | 0x20 // letters in lower case
		if !(c >= 'a' && c <= 'z' || text[i] >= '0' && text[i] <= '9' || text[i] == '_') {
			return "", false
		}
	}
	return strings.ToLower(text), true
}

func parseInterval(text string) (interval, error) {
	from, to, isRange := strings.Cut(text, "-")
	first, err := parseNumber(strings.Trim(from, blanks), maxNumber)
	if err != nil {
		return interval{}, fmt.Errorf("interval %s: %w", excerpt(text), err)
	}
	last := first
	if isRange {
		if last, err = parseNumber(strings.Trim(to, blanks), maxNumber); err != nil {
			return interval{}, fmt.Errorf("interval %s: %w", excerpt(text), err)
		}
	}
	if first == 0 || last < first {
		return interval{}, fmt.Errorf("interval %s is zero or reversed", excerpt(text))
	}
	return interval{first, last}, nil
}

// parseNumber reads decimal digits and nothing else, no sign and no underscore.
func parseNumber(text string, limit uint64) (uint64, error) {
	if text == "" {
		return 0, errors.New("a number is missing")
	}
	var n uint64
	for i := range len(text) {
		digit := uint64(text[i] - '0')
		if digit > 9 {
			return 0, fmt.Errorf("%s is no number", excerpt(text))
		}
		if n > (math.MaxUint64-digit)/10 || n*10+digit > limit {
			return 0, fmt.Errorf("%s is above %d", excerpt(text), limit)
		}
		n = n*10 + digit
	}
	return n, nil
}

// excerpt quotes text for an error, cut to a bearable length.
func excerpt(text string) string {
	if len(text) > quoted {
		return fmt.Sprintf("%q...", text[:quoted])
	}
	return fmt.Sprintf("%q", text)
}
