package gtid

import (
	"encoding/hex"
	"strconv"
	"strings"
)

// String returns the set as the servers write it, in normal form: no blanks or line breaks, uuids and tags in lower
// case and in order. The empty set is the empty text.
func (s Set) String() string { return string(s.appendText(nil)) }

// MarshalText returns String. It never fails.
func (s Set) MarshalText() ([]byte, error) { return s.appendText([]byte{}), nil }

// UnmarshalText reads what MarshalText wrote, of either kind. It is the one method that changes its receiver.
func (s *Set) UnmarshalText(text []byte) error {
	parsed, err := parseAny(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

func (s Set) appendText(b []byte) []byte {
	for i, q := range s.sequences {
		if i == 0 || q.source != s.sequences[i-1].source {
			b = comma(b)
			b = appendUUID(b, q.source)
		}
		if q.tag != "" {
			b = append(append(b, ':'), q.tag...)
		}
		for _, iv := range q.intervals {
			b = strconv.AppendUint(append(b, ':'), iv.first, 10)
			if iv.last > iv.first {
				b = strconv.AppendUint(append(b, '-'), iv.last, 10)
			}
		}
	}
	for _, p := range s.positions {
		b = comma(b)
		b = strconv.AppendUint(b, uint64(p.domain), 10)
		b = strconv.AppendUint(append(b, '-'), uint64(p.server), 10)
		b = strconv.AppendUint(append(b, '-'), p.number, 10)
	}
	return b
}

func comma(b []byte) []byte {
	if len(b) > 0 {
		return append(b, ',')
	}
	return b
}

func appendUUID(b []byte, u uuid) []byte {
	for i, group := range [...][]byte{u[:4], u[4:6], u[6:8], u[8:10], u[10:]} {
		if i > 0 {
			b = append(b, '-')
		}
		b = hex.AppendEncode(b, group)
	}
	return b
}

// parseAny reads elements of both kinds: a MySQL one has a colon, a MariaDB one has none.
func parseAny(text string) (Set, error) {
	var mysql, mariadb []string
	for element := range strings.SplitSeq(text, ",") {
		if strings.Contains(element, ":") {
			mysql = append(mysql, element)
		} else {
			mariadb = append(mariadb, element)
		}
	}
	s, err := Parse(strings.Join(mysql, ","))
	if err != nil {
		return Set{}, err
	}
	m, err := parseUnion(strings.Join(mariadb, ","))
	if err != nil {
		return Set{}, err
	}
	return Set{sequences: s.sequences, positions: m.positions}, nil
}
