package gtid_test

import (
	"testing"

	"cnmsql.co/operator/instance/gtid"
)

func TestMariaDBPositionsAreReadInAnyOrder(t *testing.T) {
	one := parseMariaDB(t, "1-1-141129273,2-2-3551534,3-3-805048")
	two := parseMariaDB(t, " 3-3-805048,\n1-1-141129273, 2-2-3551534\n")
	if !one.Equal(two) || one.String() != two.String() {
		t.Errorf("%q and %q differ", one, two)
	}
	if got := one.String(); got != "1-1-141129273,2-2-3551534,3-3-805048" {
		t.Errorf("printed as %q", got)
	}
	if one.Count() != 141129273+3551534+805048 {
		t.Errorf("Count = %d", one.Count())
	}
	if got := parseMariaDB(t, "1-10-216,2-211-18359").String(); got != "1-10-216,2-211-18359" {
		t.Errorf("printed as %q", got)
	}
	if got := parseMariaDB(t, "4294967295-4294967295-18446744073709551615").String(); got != "4294967295-4294967295-18446744073709551615" {
		t.Errorf("printed as %q", got)
	}
	if !parseMariaDB(t, "0-1-0").IsEmpty() {
		t.Error("a position before the first transaction is not empty")
	}
}

func TestMalformedMariaDBPositionsAreErrors(t *testing.T) {
	for _, text := range []string{
		"0-1-5,0-2-6", "0-1-5,0-1-5", "0-1", "0-1-2-3", "0-1-", "-1-2", "0--2", "0-1-x", "0-1-+5", "0 -1-5", "4294967296-1-1", "1-4294967296-1",
		"0-1-18446744073709551616", a + ":1", "x", "0-1-5;1-1-5", "0-1-5 1-1-5",
	} {
		if s, err := gtid.ParseMariaDB(text); err == nil || !s.IsEmpty() {
			t.Errorf("ParseMariaDB(%q) = %q, %v; want an error", text, s, err)
		}
	}
}

func TestMariaDBArithmetic(t *testing.T) {
	for _, c := range []struct {
		name                     string
		x, y                     string
		union, minus, intersect  string
		xContainsY, yContainsToo bool
	}{
		{"another server goes on in the domain", "0-1-100", "0-2-101", "0-2-101", "", "0-1-100", false, true},
		{"the same position", "0-1-100", "0-1-100", "0-1-100", "", "0-1-100", true, true},
		{"ahead on the same server", "0-1-100", "0-1-90", "0-1-100", "0-1-100", "0-1-90", true, false},
		{"diverged at the same number", "0-1-100", "0-2-100", "0-1-100,0-2-100", "0-1-100", "", false, false},
		{"two domains, each ahead in one", "0-1-5,1-1-9", "0-1-7,1-1-2", "0-1-7,1-1-9", "1-1-9", "0-1-5,1-1-2", false, false},
		{"a domain the other does not have", "0-1-5,1-1-9", "0-1-5", "0-1-5,1-1-9", "1-1-9", "0-1-5", true, false},
		{"nothing", "0-1-5", "", "0-1-5", "0-1-5", "", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, y := parseMariaDB(t, c.x), parseMariaDB(t, c.y)
			want(t, "union", x.Union(y), c.union)
			want(t, "union the other way round", y.Union(x), c.union)
			want(t, "difference", x.Minus(y), c.minus)
			want(t, "intersection", x.Intersect(y), c.intersect)
			want(t, "intersection the other way round", y.Intersect(x), c.intersect)
			if x.Contains(y) != c.xContainsY || y.Contains(x) != c.yContainsToo {
				t.Errorf("contains: %v and %v, want %v and %v", x.Contains(y), y.Contains(x), c.xContainsY, c.yContainsToo)
			}
			want(t, "left side afterwards", x, c.x)
			want(t, "right side afterwards", y, c.y)
		})
	}
}

func TestAUnionOfDivergedHistoriesContainsBothAndSurvivesItsText(t *testing.T) {
	x, y := parseMariaDB(t, "0-1-100"), parseMariaDB(t, "0-2-100")
	u := x.Union(y)
	if !u.Contains(x) || !u.Contains(y) || x.Contains(u) {
		t.Errorf("%q is no union", u)
	}
	if _, err := gtid.ParseMariaDB(u.String()); err == nil {
		t.Errorf("%q was accepted as a position", u)
	}
	roundTrip(t, u)
	if later := u.Union(parseMariaDB(t, "0-2-101")); later.String() != "0-2-101" {
		t.Errorf("a later position leaves %q", later)
	}
}

func TestMySQLAndMariaDBNeverMeet(t *testing.T) {
	mysql, maria := parse(t, "A:1-100"), parseMariaDB(t, "0-1-1")
	if mysql.Contains(maria) || maria.Contains(mysql) || mysql.Equal(maria) {
		t.Error("a set of one kind contains one of the other kind")
	}
	if !mysql.Minus(maria).Equal(mysql) || !maria.Minus(mysql).Equal(maria) {
		t.Error("a difference across kinds is not the whole left side")
	}
	if !mysql.Intersect(maria).IsEmpty() {
		t.Error("an intersection across kinds is not empty")
	}
	both := mysql.Union(maria)
	want(t, "union", both, "A:1-100,0-1-1")
	if !both.Contains(mysql) || !both.Contains(maria) || both.Count() != 101 {
		t.Errorf("%q does not hold both", both)
	}
	if _, err := gtid.Parse(both.String()); err == nil {
		t.Error("a union across kinds was accepted as a MySQL set")
	}
	if _, err := gtid.ParseMariaDB(both.String()); err == nil {
		t.Error("a union across kinds was accepted as a MariaDB position")
	}
	roundTrip(t, both)
	if !parse(t, "").Equal(parseMariaDB(t, "")) {
		t.Error("the empty sets of both kinds differ")
	}
}

func TestUnmarshalRefusesWhatMarshalNeverWrites(t *testing.T) {
	for _, text := range []string{"0-1-5,0-2-6", "0-1-5,0-1-5", "x", a + ":0"} {
		var s gtid.Set
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q was read as %q", text, s)
		}
	}
}

func roundTrip(t testing.TB, s gtid.Set) {
	t.Helper()
	text, err := s.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	var back gtid.Set
	if err := back.UnmarshalText(text); err != nil {
		t.Fatal(err)
	}
	if !back.Equal(s) || back.String() != s.String() {
		t.Errorf("%q came back as %q", s, back)
	}
}
