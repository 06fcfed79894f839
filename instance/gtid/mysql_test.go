package gtid_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/internal/mysqltest"
)

// randomText writes a set the way nobody would, with a chance of tags, repetitions, overlaps and blanks.
func randomText(r *rand.Rand) string {
	sources := []string{a, b, strings.ToUpper(a), "ffffffff-0000-11ee-be56-0242ac120002"}
	tags := []string{"", "", ":x", ":_y2", ":X"}
	var elements []string
	for range r.IntN(6) {
		element := sources[r.IntN(len(sources))] + tags[r.IntN(len(tags))]
		for range 1 + r.IntN(3) {
			first := 1 + r.IntN(40)
			element += fmt.Sprintf(":%d-%d", first, first+r.IntN(10))
		}
		elements = append(elements, element)
	}
	return strings.Join(elements, []string{",", ",\n", " , "}[r.IntN(3)])
}

func TestSetsAgreeWithARealServer(t *testing.T) {
	db := mysqltest.Start(t, "gtid", mysqltest.Options{}).DB(t)
	subtract := func(x, y string) string {
		var out string
		if err := db.QueryRowContext(t.Context(), "SELECT GTID_SUBTRACT(?, ?)", x, y).Scan(&out); err != nil {
			t.Fatalf("GTID_SUBTRACT(%q, %q): %v", x, y, err)
		}
		return strings.ReplaceAll(out, "\n", "")
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		one, two := randomText(r), randomText(r)
		x, y := parse(t, one), parse(t, two)
		if got := subtract(one, ""); got != x.String() {
			t.Errorf("%q is read as %q, the server says %q", one, x, got)
		}
		if got := subtract(one, two); got != x.Minus(y).String() {
			t.Errorf("%q minus %q is %q, the server says %q", x, y, x.Minus(y), got)
		}
		if got := subtract(one, subtract(one, two)); got != x.Intersect(y).String() {
			t.Errorf("%q and %q have %q in common, the server says %q", x, y, x.Intersect(y), got)
		}
		if got := subtract(one+","+two, ""); got != x.Union(y).String() {
			t.Errorf("%q and %q together are %q, the server says %q", x, y, x.Union(y), got)
		}
		var subset bool
		if err := db.QueryRowContext(t.Context(), "SELECT GTID_SUBSET(?, ?)", two, one).Scan(&subset); err != nil {
			t.Fatal(err)
		}
		if subset != x.Contains(y) {
			t.Errorf("%q contains %q: %v, the server says %v", x, y, x.Contains(y), subset)
		}
	}
}

// TestMalformedTextIsMalformedToARealServer holds the parser to the server's grammar. It is stricter in what no server
// prints: a reversed interval, or a source or tag without one, is nothing to the server and more likely damage.
func TestMalformedTextIsMalformedToARealServer(t *testing.T) {
	db := mysqltest.Start(t, "gtid", mysqltest.Options{}).DB(t)
	for _, c := range []struct {
		text     string
		stricter bool
	}{
		{text: ""}, {text: " "}, {text: ","}, {text: "A:1,"}, {text: ",,A:1"}, {text: "A:1,,B:1"}, {text: "A : 1 - 3 : x : 4"}, {text: "A:1-"}, {text: "A:-1"}, {text: "A:1--2"},
		{text: "A:0"}, {text: "A:0-5"}, {text: "A:1x:1"}, {text: "A:+1"}, {text: "A:1 2"}, {text: "A:"}, {text: "A::1"}, {text: "A:1:"}, {text: "0-1-5"},
		{text: "A:9223372036854775806"}, {text: "A:9223372036854775807"}, {text: "A:1-9223372036854775807"}, {text: "A:99999999999999999999"}, {text: "A:007"},
		{text: "A:" + strings.Repeat("x", 32) + ":1"}, {text: "A:" + strings.Repeat("x", 33) + ":1"}, {text: "A:x:1:X:2"}, {text: "A:_:1"},
		{text: "A:3-1", stricter: true}, {text: a, stricter: true}, {text: "A:x", stricter: true}, {text: "A:1:x", stricter: true},
		{text: strings.ReplaceAll(a, "-", "") + ":1", stricter: true},
	} {
		_, err := gtid.Parse(expand(c.text))
		var out sql.NullString
		refused := db.QueryRowContext(t.Context(), "SELECT GTID_SUBTRACT(?, '')", expand(c.text)).Scan(&out) != nil
		if (err != nil) != (refused || c.stricter) || refused && c.stricter {
			t.Errorf("%q: our verdict is %v, the server refuses: %v (%q)", c.text, err, refused, out.String)
		}
	}
}
