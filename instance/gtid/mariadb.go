package gtid

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// ParseMariaDB reads a MariaDB position such as the text of gtid_current_pos: domain-server-number, one for each
// domain, separated by commas, in any order. Domain and server are 32-bit, the number 64-bit. Empty elements are
// skipped and an empty text is the empty set; so is number 0, since no transaction has it. A domain that occurs twice is
// an error, as it is for the server; a binary log state, which may name several servers of one domain, is no position.
func ParseMariaDB(text string) (Set, error) {
	list, err := parsePositions(text)
	if err != nil {
		return Set{}, err
	}
	for i := 1; i < len(list); i++ {
		if list[i].domain == list[i-1].domain {
			return Set{}, domainTwice(text, list[i].domain)
		}
	}
	return Set{positions: list}, nil
}

// parseUnion reads what MarshalText wrote. Unlike a position it may hold the ends of histories that have diverged:
// one domain, one number, different servers.
func parseUnion(text string) (Set, error) {
	list, err := parsePositions(text)
	if err != nil {
		return Set{}, err
	}
	for i := 1; i < len(list); i++ {
		a, b := list[i-1], list[i]
		if a.domain == b.domain && (a.number != b.number || a.server == b.server) {
			return Set{}, domainTwice(text, b.domain)
		}
	}
	return Set{positions: list}, nil
}

func domainTwice(text string, domain uint32) error {
	return fmt.Errorf("parsing MariaDB position %s: domain %d occurs more than once", excerpt(text), domain)
}

// parsePositions returns the elements in order, without those that stand for nothing.
func parsePositions(text string) ([]position, error) {
	var list []position
	for element := range strings.SplitSeq(text, ",") {
		element = strings.Trim(element, blanks)
		if element == "" {
			continue
		}
		p, err := parsePosition(element)
		if err != nil {
			return nil, fmt.Errorf("parsing MariaDB position %s: %w", excerpt(element), err)
		}
		if p.number > 0 {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, comparePositions)
	return list, nil
}

func parsePosition(element string) (position, error) {
	parts := strings.Split(element, "-")
	if len(parts) != 3 {
		return position{}, errors.New("not of the form domain-server-number")
	}
	domain, err := parseNumber(parts[0], math.MaxUint32)
	if err != nil {
		return position{}, fmt.Errorf("domain: %w", err)
	}
	server, err := parseNumber(parts[1], math.MaxUint32)
	if err != nil {
		return position{}, fmt.Errorf("server: %w", err)
	}
	number, err := parseNumber(parts[2], math.MaxUint64)
	if err != nil {
		return position{}, fmt.Errorf("number: %w", err)
	}
	return position{domain: uint32(domain), server: uint32(server), number: number}, nil
}
