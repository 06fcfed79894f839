package gtid_test

import (
	"testing"

	"cnmsql.co/operator/instance/gtid"
)

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"", ",", a + ":1", a + ":1-5:domain_1:1-3:7", "3E11FA47-71CA-11E1-9E33-C80AA9429562:1-3,\n" + b + ":1\n",
		a + ":3-1", a + ":0-5", a + ":1-", a + ":9223372036854775806", a + ":9223372036854775807", a + ":x", "0-1-5",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { check(t, gtid.Parse, text) })
}

func FuzzParseMariaDB(f *testing.F) {
	for _, text := range []string{"", "0-1-100", "1-1-141129273,2-2-3551534", "0-1-5,0-2-6", "0-1-", "0-1-18446744073709551615", a + ":1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { check(t, gtid.ParseMariaDB, text) })
}

// check holds a parser to what the package promises for every text.
func check(t *testing.T, parse func(string) (gtid.Set, error), text string) {
	s, err := parse(text)
	if err != nil {
		if !s.IsEmpty() {
			t.Fatalf("%q gives %q beside the error %v", text, s, err)
		}
		return
	}
	again, err := parse(s.String())
	if err != nil || !again.Equal(s) || again.String() != s.String() {
		t.Fatalf("%q was read as %q and that as %q, %v", text, s, again, err)
	}
	if !s.Contains(again) || !s.Minus(again).IsEmpty() || !s.Union(again).Equal(s) || !s.Intersect(again).Equal(s) {
		t.Fatalf("%q is not itself", s)
	}
	roundTrip(t, s)
}
