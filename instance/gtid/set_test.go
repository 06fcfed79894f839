package gtid_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"cnmsql.co/operator/instance/gtid"
)

const (
	a = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	b = "4d22aa10-0000-11ee-be56-0242ac120002"
)

// expand writes sets with one-letter sources in test tables.
func expand(text string) string {
	return strings.NewReplacer("A:", a+":", "B:", b+":").Replace(text)
}

func parse(t testing.TB, text string) gtid.Set {
	t.Helper()
	s, err := gtid.Parse(expand(text))
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return s
}

func parseMariaDB(t testing.TB, text string) gtid.Set {
	t.Helper()
	s, err := gtid.ParseMariaDB(text)
	if err != nil {
		t.Fatalf("ParseMariaDB(%q): %v", text, err)
	}
	return s
}

func want(t *testing.T, what string, got gtid.Set, text string) {
	t.Helper()
	if got.String() != expand(text) {
		t.Errorf("%s = %q, want %q", what, got, expand(text))
	}
}

func TestParsingNormalises(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		count            uint64
	}{
		{"nothing", "", "", 0},
		{"blanks", " \n\t", "", 0},
		{"a tag applies up to the next one", "A:1-5:domain_1:1-3:7", "A:1-5:domain_1:1-3:7", 9},
		{"tags without an untagged part", "A:aaaa:1:abc:1-3", "A:aaaa:1:abc:1-3", 4},
		{"one tag", "A:1-3:foobar:1", "A:1-3:foobar:1", 4},
		{"tags are printed in lower case", "A:FooBar:1,A:foobar:2", "A:foobar:1-2", 2},
		{"tags are printed in order, after the untagged part", "A:b:1:a:1,A:7", "A:7:a:1:b:1", 3},
		{"the same tag again", "A:x:1:y:2:x:3", "A:x:1:3:y:2", 3},
		{"the longest tag", "A:" + strings.Repeat("x", 32) + ":1", "A:" + strings.Repeat("x", 32) + ":1", 1},
		{"a tag may start with an underscore", "A:_1:1", "A:_1:1", 1},
		{"the same source again", "A:100-200,A:300-400", "A:100-200:300-400", 202},
		{"intervals in any order", "A:300-400:100-200", "A:100-200:300-400", 202},
		{"intervals that touch", "A:4:1-3", "A:1-4", 4},
		{"intervals that overlap", "A:1-10:5-20:3", "A:1-20", 20},
		{"a range of one", "A:5-5", "A:5", 1},
		{"sources in order", "B:1,A:1", "A:1,B:1", 2},
		{"as the server prints it", strings.ToUpper(a) + ":1-3,\n" + b + ":1\n", "A:1-3,B:1", 4},
		{"blanks between all parts", " " + a + " : 1 - 3 : x : 4 ,\r\n", "A:1-3:x:4", 4},
		{"empty elements", ",A:1-3,,B:1,", "A:1-3,B:1", 4},
		{"the largest number", "A:9223372036854775806", "A:9223372036854775806", 1},
		{"everything one source can have", "A:1-9223372036854775806", "A:1-9223372036854775806", math.MaxInt64 - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := parse(t, c.text)
			want(t, "Parse", s, c.want)
			if s.Count() != c.count {
				t.Errorf("Count = %d, want %d", s.Count(), c.count)
			}
			if s.IsEmpty() != (c.count == 0) {
				t.Errorf("IsEmpty = %v with a count of %d", s.IsEmpty(), c.count)
			}
			if again := parse(t, s.String()); !again.Equal(s) {
				t.Errorf("parsing %q again gives %q", s, again)
			}
		})
	}
}

func TestMalformedTextIsAnErrorNeverAnEmptySet(t *testing.T) {
	for _, text := range []string{
		"A:3-1", "A:0", "A:0-5", "A:1-", "A:-1", "A:1--2", "A:1-2-3", "A:", "A::1", "A:1:", "A:+1", "A:1_000", "A:0x1", "A:1 2",
		"A:9223372036854775807", "A:1-9223372036854775807", "A:18446744073709551617", "A:99999999999999999999999",
		"A:x", "A:1:x", "A:x:y:1", "A:1x:1", "A:x-y:1", "A:" + strings.Repeat("x", 33) + ":1", "A:ü:1", "A:\x00:1",
		a, "A1:1", ":1", "1-3", "0-1-100", "A:1;B:1", "A:1 B:1", "A:1,x", "A:1\x00",
		strings.ReplaceAll(a, "-", "") + ":1", "{" + a + "}:1", strings.Replace(a, "f", "g", 1) + ":1", "ANONYMOUS", "AUTOMATIC",
	} {
		s, err := gtid.Parse(expand(text))
		if err == nil {
			t.Errorf("Parse(%q) = %q, want an error", text, s)
		}
		if !s.IsEmpty() {
			t.Errorf("Parse(%q) returns %q beside the error", text, s)
		}
	}
}

func TestErrorsNameTheElementAndStayShort(t *testing.T) {
	_, err := gtid.Parse(expand("A:1,B:5-3"))
	if err == nil || !strings.Contains(err.Error(), b) || !strings.Contains(err.Error(), "reversed") {
		t.Errorf("error %q does not name element and fault", err)
	}
	if _, err = gtid.Parse(strings.Repeat("z", 1<<20)); err == nil || len(err.Error()) > 1000 {
		t.Errorf("error for a long malformed text has %d bytes", len(err.Error()))
	}
}

func TestSetArithmetic(t *testing.T) {
	type op func(x, y gtid.Set) gtid.Set
	union, minus, intersect := op(gtid.Set.Union), op(gtid.Set.Minus), op(gtid.Set.Intersect)
	for _, c := range []struct {
		name string
		op   op
		x, y string
		want string
	}{
		{"union with a contained interval", union, "A:1-100", "A:3", "A:1-100"},
		{"union of neighbours", union, "A:1-3", "A:4", "A:1-4"},
		{"union that closes a gap", union, "A:1-3:7-9", "A:4-6", "A:1-9"},
		{"union keeps tags apart", union, "A:1-3", "A:x:1", "A:1-3:x:1"},
		{"union with nothing", union, "", "B:1", "B:1"},
		{"union at the upper end", union, "A:9223372036854775805", "A:9223372036854775806", "A:9223372036854775805-9223372036854775806"},
		{"intersection that is a single number", intersect, "A:1-10", "A:7", "A:7"},
		{"intersection at a shared end", intersect, "A:1-10", "A:10-20", "A:10"},
		{"intersection of several", intersect, "A:1-10:20-30,B:1", "A:5-25", "A:5-10:20-25"},
		{"intersection of different tags", intersect, "A:1-10", "A:x:1-10", ""},
		{"difference at the lower end", minus, "A:21-57", "A:20-21", "A:22-57"},
		{"difference at the upper end", minus, "A:21-57", "A:57-58", "A:21-56"},
		{"difference in the middle", minus, "A:1-10", "A:5", "A:1-4:6-10"},
		{"difference of one with itself", minus, "A:5", "A:5", ""},
		{"difference over two intervals", minus, "A:1-10:20-30", "A:5-25", "A:1-4:26-30"},
		{"difference up to the upper end", minus, "A:1-9223372036854775806", "A:2-9223372036854775806", "A:1"},
		{"difference of tags", minus, "A:1-3:x:1-3", "A:1-3:x:2", "A:x:1:3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, y := parse(t, c.x), parse(t, c.y)
			want(t, "result", c.op(x, y), c.want)
			want(t, "left side afterwards", x, c.x)
			want(t, "right side afterwards", y, c.y)
		})
	}
}

func TestContainment(t *testing.T) {
	for _, c := range []struct {
		name                  string
		x, y                  string
		xContainsY, yContains bool
	}{
		{"a donor and a recipient with errant transactions", "A:1-100", "A:1-100,B:1-2", false, true},
		{"a donor and a recipient that is merely behind", "A:1-100", "A:1-80", true, false},
		{"a gap", "A:1-100", "A:1-50:52-101", false, false},
		{"an interval over a gap", "A:1-50:52-100", "A:50-52", false, false},
		{"a tag is a sequence of its own", "A:x:1-3", "A:1-3", false, false},
		{"the untagged part of a tagged set", "A:1-100:x:1", "A:1-100", true, false},
		{"tags in different cases", "A:FOO:1", "A:foo:1", true, true},
		{"sources in different cases", strings.ToUpper(a) + ":1", "A:1", true, true},
		{"old sources stay", "A:1-100,B:1-50", "A:1-103", false, false},
		{"nothing", "A:1", "", true, false},
		{"nothing at all", "", "", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, y := parse(t, c.x), parse(t, c.y)
			if got := x.Contains(y); got != c.xContainsY {
				t.Errorf("x contains y: %v, want %v", got, c.xContainsY)
			}
			if got := y.Contains(x); got != c.yContains {
				t.Errorf("y contains x: %v, want %v", got, c.yContains)
			}
			if got := x.Equal(y); got != (c.xContainsY && c.yContains) {
				t.Errorf("Equal = %v", got)
			}
		})
	}
}

func TestASourceIsTakenOut(t *testing.T) {
	s := parse(t, "A:1-5:x:3,B:1-7")
	want(t, "without A", s.WithoutSource(strings.ToUpper(a)), "B:1-7")
	want(t, "without B", s.WithoutSource(b), "A:1-5:x:3")
	want(t, "without a stranger", s.WithoutSource("00000000-0000-0000-0000-000000000000"), "A:1-5:x:3,B:1-7")
	want(t, "without what is no uuid", s.WithoutSource(""), "A:1-5:x:3,B:1-7")
	want(t, "of a MariaDB position", parseMariaDB(t, "0-1-5").WithoutSource(a), "0-1-5")
	if only := parse(t, "B:1-7").WithoutSource(b); !only.IsEmpty() || !only.Equal(gtid.Set{}) {
		t.Errorf("without its only source: %s", only)
	}
}

func TestTheNumbersOfASourceEndAndHaveGaps(t *testing.T) {
	for _, c := range []struct {
		set       string
		last, gap uint64
	}{
		{"", 0, 0},
		{"A:x:99,B:7", 0, 0},
		{"A:1-5,B:7", 5, 0},
		{"A:1-5:9-12:x:99", 12, 6},
		{"A:2:4", 4, 1},
		{"A:3-4", 4, 1},
	} {
		for _, source := range []string{a, strings.ToUpper(a)} {
			if s := parse(t, c.set); s.Last(source) != c.last || s.FirstGap(source) != c.gap {
				t.Errorf("%q: last %d, first gap %d, want %d and %d", c.set, s.Last(source), s.FirstGap(source), c.last, c.gap)
			}
		}
	}
	if s := parse(t, "A:1-5:9"); s.Last("") != 0 || s.FirstGap("no uuid") != 0 {
		t.Error("what is no uuid numbers something")
	}
}

func TestBySourceFindsAllTagsOfOneServer(t *testing.T) {
	s := parse(t, "A:1-5:x:3,B:1-7")
	want(t, "by A", s.BySource(a), "A:1-5:x:3")
	want(t, "by A in upper case", s.BySource(strings.ToUpper(a)), "A:1-5:x:3")
	want(t, "by B", s.BySource(b), "B:1-7")
	want(t, "by a stranger", s.BySource("00000000-0000-0000-0000-000000000000"), "")
	want(t, "by what is no uuid", s.BySource(""), "")
	want(t, "of a MariaDB position", parseMariaDB(t, "0-1-5").BySource("1"), "")
	want(t, "the set afterwards", s, "A:1-5:x:3,B:1-7")
}

func TestTheZeroValueIsTheEmptySet(t *testing.T) {
	var zero gtid.Set
	for name, s := range map[string]gtid.Set{
		"parsed":       parse(t, ""),
		"position":     parseMariaDB(t, ""),
		"difference":   parse(t, "A:1").Minus(parse(t, "A:1")),
		"intersection": parse(t, "A:1").Intersect(parse(t, "B:1")),
		"MariaDB":      parseMariaDB(t, "0-1-1").Minus(parseMariaDB(t, "0-1-1")),
	} {
		if !s.IsEmpty() || !s.IsZero() || !s.Equal(zero) || !zero.Contains(s) || s.String() != "" || s.Count() != 0 {
			t.Errorf("%s: %#v is not the empty set", name, s)
		}
	}
}

func TestSetsTravelInJSON(t *testing.T) {
	type report struct {
		Executed gtid.Set `json:"executed"`
		Errant   gtid.Set `json:"errant,omitzero"`
	}
	in := report{Executed: parse(t, "B:1,A:1-3:X:2")}
	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(text); got != expand(`{"executed":"A:1-3:x:2,B:1"}`) {
		t.Errorf("written as %s", got)
	}
	out := report{Errant: parse(t, "A:9")}
	if err := json.Unmarshal([]byte(`{"executed":"","errant":"`+in.Executed.String()+`"}`), &out); err != nil {
		t.Fatal(err)
	}
	if !out.Executed.IsEmpty() || !out.Errant.Equal(in.Executed) {
		t.Errorf("read as %q and %q", out.Executed, out.Errant)
	}
	if err := json.Unmarshal([]byte(`{"executed":"A:1"}`), &out); err == nil {
		t.Error("a malformed set was read without an error")
	}
}

func TestCountSaturates(t *testing.T) {
	s := parse(t, "A:1-9223372036854775806:x:1-9223372036854775806:y:1-9223372036854775806")
	if s.Count() != math.MaxUint64 {
		t.Errorf("Count = %d, want the largest number", s.Count())
	}
}
