package mycnf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cnmsql.co/operator/instance/flavor"
)

// Problem is a setting that cannot be accepted. The three parts make a sentence for the user: see Error.
type Problem struct {
	// Key is the parameter as the user wrote it. In a file it is "name:line: option".
	Key string
	// Reason says what is wrong, without repeating the value.
	Reason string
	// Remedy says what to do.
	Remedy string
}

// Error returns the problem as one line.
func (p Problem) Error() string { return fmt.Sprintf("%s: %s: %s", p.Key, p.Reason, p.Remedy) }

// Target is what is known about the server that settings are meant for. The zero value knows nothing, and only what is
// wrong everywhere is found.
type Target struct {
	// Server is the version; the zero value is an unknown one.
	Server flavor.Server
	// SemiSync says that semi-synchronous replication is on.
	SemiSync bool
}

// Check returns the problems of user parameters, for whatever server, in order of their keys.
func Check(parameters map[string]string) []Problem { return Target{}.Check(parameters) }

// Check returns the problems of user parameters, in order of their keys: managed options in every spelling, options that
// the version does not have any more, values out of bounds, and text that cannot be written into an option file.
func (t Target) Check(parameters map[string]string) []Problem {
	var problems []Problem
	seen := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		if p, bad := t.checkOption(key, parameters[key]); bad {
			problems = append(problems, p)
			continue
		}
		if first, twice := seen[identity(key)]; twice {
			problems = append(problems, Problem{key, fmt.Sprintf("it is the same option as %s", first), "keep one of them"})
		}
		seen[identity(key)] = key
	}
	return problems
}

// checkOption returns the first problem of one option.
func (t Target) checkOption(key, value string) (Problem, bool) {
	shown := strings.ToValidUTF8(fmt.Sprintf("%.80s", key), "?")
	if badText(key) {
		shown = strconv.QuoteToASCII(shown)
	}
	if len(key) > maxKey {
		return Problem{shown, "no option has such a long name", "remove it"}, true
	}
	if r, found := ruleFor(key, t.SemiSync); found {
		return Problem{shown, r.reason, r.remedy}, true
	}
	switch {
	case !isKey(key):
		return Problem{shown, "no option has such a name", "write it in lower case, with letters, digits, underscores, dashes and dots only"}, true
	case badText(value):
		return Problem{shown, "the value has line breaks, control characters or is no UTF-8 text", "write it on one line"}, true
	case len(line(key, value)) > maxLine:
		return Problem{shown, "the value is too long for an option file", fmt.Sprintf("keep it below %d bytes", maxLine)}, true
	}
	for _, name := range spellings(key) {
		if b, bounded := bounds[name]; bounded && !b.holds(value) {
			return Problem{shown, b.reason, fmt.Sprintf("use a number from %d to %d", b.least, b.most)}, true
		}
	}
	if t.Server != (flavor.Server{}) {
		if r, lacks := t.Server.Lacks(plainName(key)); lacks {
			return Problem{shown, fmt.Sprintf("MySQL %s does not have it and would not start", t.Server.Version), r.Use}, true
		}
	}
	return Problem{}, false
}

// plainName is the key under the name the user chose, without changing old words into new ones. An option behind loose-
// may be missing, so the prefix stays.
func plainName(key string) string { return strings.ReplaceAll(strings.ToLower(key), "-", "_") }

// bound limits a number that users may set.
type bound struct {
	least, most uint64
	reason      string
}

// bounds are the limits of options that users may set, by name as spellings returns it.
var bounds = map[string]bound{
	// At least two of flavor.HeartbeatPeriod; at most the server's own default.
	"replica_net_timeout": {4, 60, "replicas would notice a lost primary too late, or too early"},
	"max_connections":     {20, 100_000, "the instance manager and the replicas need connections of their own"},
}

func (b bound) holds(value string) bool {
	n, err := strconv.ParseUint(strings.TrimSpace(value), 10, 64)
	return err == nil && n >= b.least && n <= b.most
}
