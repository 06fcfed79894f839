package lease

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	api "cnmsql.co/operator/api/v1alpha1"
)

const (
	mine   = "c-1/a"
	theirs = "c-2/b"
	second = time.Second
)

func held(version, holder string) Record { return Record{Version: version, Holder: holder} }

// holder has acquired the lease by a call that started at 100 s and took no time.
func holder() State {
	return New(mine, DefaultTimes()).Observe(90*second, held("1", "")).Observe(100*second, held("2", mine)).Acquired(100*second, 100*second)
}

func TestTheTimesHoldAndWrongOnesDoNot(t *testing.T) {
	d := DefaultTimes()
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	if d.TTL != api.PrimaryLeaseTTL {
		t.Errorf("TTL %s", d.TTL)
	}
	for name, change := range map[string]func(*Times){
		"renewed every 30 s":         func(w *Times) { w.Renew = 30 * second },
		"calls longer than a period": func(w *Times) { w.Call = 6 * second },
		"killed after it expires":    func(w *Times) { w.Kill = 15 * second },
		"killed before the fence":    func(w *Times) { w.Kill = 9 * second },
		"promise of 10 s":            func(w *Times) { w.Promise = 10 * second },
		"asked too late":             func(w *Times) { w.VouchFrom = 9 * second },
		"asked too seldom":           func(w *Times) { w.VouchEvery = 9 * second },
		"nothing at all":             func(w *Times) { *w = Times{} },
	} {
		wrong := d
		change(&wrong)
		if wrong.Check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A healthy holder is one whose calls are answered within half of their time, one in a while not at all. An
// observer sees each change up to a second late, and its clock runs up to 5 % faster.
func TestAHealthyHoldersLeaseNeverLooksExpired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := DefaultTimes()
		now := rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "start")
		rate := rapid.Float64Range(0.95, 1.05).Draw(t, "rate")
		draw := func(most time.Duration, what string) time.Duration {
			return time.Duration(rapid.Int64Range(0, int64(most)).Draw(t, what))
		}
		at := time.Duration(now)
		s := New(mine, times).Observe(at, held("0", "")).Observe(at, held("1", mine)).Acquired(at, at)
		theirClock := func(d time.Duration) time.Duration { return time.Duration(float64(d)*rate) - time.Hour }
		observer := New(theirs, times).Observe(theirClock(at), held("1", mine))
		seen, spared, version := at, 0, 1
		for range 40 {
			d := s.Due(at)
			if !d.Renew {
				if d.Next <= at || d.Next > at+times.Renew {
					t.Fatalf("looks again in %s", d.Next-at)
				}
				at = d.Next
				continue
			}
			if spared == 0 && rapid.Bool().Draw(t, "lost") {
				spared = 3
				s = s.NotRenewed(at)
				at += times.Call
			} else {
				spared = max(0, spared-1)
				started := at
				at += draw(times.Call/2, "latency")
				version++
				s = s.Renewed(started)
				shown := max(seen, at+draw(second, "seen"))
				if left := observer.UntilExpiry(theirClock(shown)); left == 0 {
					t.Fatalf("the lease looks expired to an observer after %s", shown-seen)
				}
				observer, seen = observer.Observe(theirClock(shown), held(string(rune('0'+version)), mine)), shown
			}
			if !s.InForce(at) || s.Due(at).Fence || observer.MayAcquire(theirClock(at)) {
				t.Fatalf("in force %v, due %+v", s.InForce(at), s.Due(at))
			}
		}
	})
}

func TestWhatIsDueFollowsTheTimes(t *testing.T) {
	s := holder()
	cases := []struct {
		name string
		s    State
		now  time.Duration
		want Due
	}{
		{"nothing at first", s, 101 * second, Due{Next: 105 * second}},
		{"a renewal after 5 s", s, 105 * second, Due{Renew: true, Next: 108 * second}},
		{"after a failure a second later", s.NotRenewed(105 * second), 105 * second, Due{Next: 106 * second}},
		{"the others from 8 s on", s.NotRenewed(108 * second), 108 * second, Due{Vouch: true, Next: 109 * second}},
		{"again soon after a refusal", s.NotRenewed(108 * second).Doubted(108 * second), 108 * second, Due{Next: 108500 * time.Millisecond}},
		{"5 s after a unanimous round", s.NotRenewed(112 * second).Agreed(108 * second), 112 * second, Due{Next: 113 * second}},
		{"asking again", s.NotRenewed(113 * second).Agreed(108 * second), 113 * second, Due{Vouch: true, Next: 114 * second}},
		{"a fence 10 s after the last round", s.NotRenewed(117 * second).Agreed(108 * second), 118 * second, Due{Renew: true, Fence: true, Why: MissedDeadline, Next: Never}},
		{"a fence at 10 s", s.NotRenewed(109500 * time.Millisecond), 110 * second, Due{Fence: true, Why: MissedDeadline, Next: 110500 * time.Millisecond}},
		{"then the kill", s.NotRenewed(109500 * time.Millisecond).FenceBegun(110 * second), 110 * second, Due{Next: 110500 * time.Millisecond}},
		{"at 13 s", s.NotRenewed(113 * second).FenceBegun(110 * second), 113 * second, Due{Kill: true, Next: 114 * second}},
		{"unless it is harmless", s.NotRenewed(113 * second).FenceBegun(110 * second).Harmless(), 113 * second, Due{Next: 114 * second}},
		{"a renewal ends the vouching", s.Agreed(108 * second).Renewed(109 * second), 112 * second, Due{Next: 114 * second}},
		{"a lost lease at once", s.Observe(101*second, held("3", theirs)), 101 * second, Due{Fence: true, Why: string(LostToAnother), Next: Never}},
		{"a later generation at once", s.Displaced(), 101 * second, Due{Fence: true, Why: string(LostGeneration), Next: Never}},
		{"and a kill 3 s later", s.Displaced().FenceBegun(101 * second), 101 * second, Due{Next: 104 * second}},
		{"not later than without", s.Displaced().FenceBegun(112 * second), 113 * second, Due{Kill: true, Next: Never}},
		{"nothing for others", New(theirs, DefaultTimes()).Observe(0, held("1", mine)), time.Hour, Due{Next: Never}},
		{"nothing after a release", s.Releasing(), time.Hour, Due{Next: Never}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := c.s.Due(c.now); got != c.want {
				t.Errorf("due %+v, want %+v", got, c.want)
			}
		})
	}
}

func TestTheLeaseIsInForceOnlyWhileItIsConfirmed(t *testing.T) {
	s := holder()
	if s.Remaining(104*second) != 6*second || s.InForce(110*second) || !s.InForce(110*second-1) {
		t.Errorf("remaining %s", s.Remaining(104*second))
	}
	if v := s.Agreed(108 * second); v.Remaining(110*second) != 8*second || v.Vouched(109*second) || !v.Vouched(110*second) {
		t.Errorf("with the others' word %s, by it alone %v", v.Remaining(110*second), v.Vouched(110*second))
	}
	fenced := s.FenceBegun(110 * second)
	if fenced.InForce(105*second) || fenced.Agreed(109*second).InForce(110*second) {
		t.Error("in force after the fence has begun")
	}
	if f, ok := fenced.Fenced(140 * second); !ok || f != 30*second {
		t.Errorf("fenced for %s, %v", f, ok)
	}
	back := fenced.Renewed(111 * second)
	if back.InForce(112 * second) {
		t.Error("in force while the fence has not ended")
	}
	if back = back.Harmless(); back.Remaining(112*second) != 9*second {
		t.Errorf("remaining %s after a renewal", back.Remaining(112*second))
	}
	if _, ok := back.Fenced(112 * second); ok {
		t.Error("fenced after a renewal")
	}
	if d := back.Due(121 * second); !d.Fence {
		t.Error("a second outage is not fenced")
	}
	if _, ok := fenced.Observe(112*second, held("3", theirs)).Fenced(140 * second); ok {
		t.Error("fenced although another has the role")
	}
}

func TestAServerIsWatchedWhileItMayBeWritable(t *testing.T) {
	s := holder()
	fenced := s.FenceBegun(110 * second)
	for _, c := range []struct {
		name string
		s    State
		want time.Duration // 0: not at all
	}{
		{"held", s, 113 * second},
		{"renewed", s.Renewed(105 * second), 118 * second},
		{"vouched for", s.Agreed(108 * second), 121 * second},
		{"being fenced", fenced, 113 * second},
		{"fenced", fenced.Harmless(), 0},
		{"renewed after the fence", fenced.Harmless().Renewed(115 * second), 128 * second},
		{"lost", s.Displaced(), 113 * second},
		{"being fenced after the loss", s.Displaced().FenceBegun(101 * second), 104 * second},
		{"given back", s.Releasing(), 0},
		{"never held", New(mine, DefaultTimes()), 0},
	} {
		if at, armed := c.s.KillBy(); at != c.want || armed != (c.want > 0) {
			t.Errorf("%s: killed at %s, %v", c.name, at, armed)
		}
	}
}

func TestTheLeaseIsTakenByTheRules(t *testing.T) {
	fresh := New(mine, DefaultTimes())
	promised := func(r Record) State {
		s, a := fresh.Observe(100*second, r).Answer(100*second, "c-1", Question{Instance: "c-2", Holder: theirs}, View{})
		if !a.Vouches {
			t.Fatal(a.Why)
		}
		return s
	}
	for _, c := range []struct {
		name string
		s    State
		now  time.Duration
		want time.Duration
	}{
		{"never seen", fresh, 0, Never},
		{"free", fresh.Observe(100*second, held("1", "")), 100 * second, 0},
		{"its own of before a restart", fresh.Observe(100*second, held("1", mine)), 100 * second, 0},
		{"another's", fresh.Observe(100*second, held("1", theirs)), 100 * second, 15 * second},
		{"another's, watched for a while", fresh.Observe(100*second, held("1", theirs)), 110 * second, 5 * second},
		{"expired", fresh.Observe(100*second, held("1", theirs)), 115 * second, 0},
		{"seen again unchanged", fresh.Observe(100*second, held("1", theirs)).Observe(114*second, held("1", theirs)), 115 * second, 0},
		{"renewed", fresh.Observe(100*second, held("1", theirs)).Observe(114*second, held("2", theirs)), 115 * second, 14 * second},
		{"of one's predecessor", fresh.Observe(100*second, held("1", "c-1/0")), 101 * second, 14 * second},
		{"with a longer TTL", fresh.Observe(100*second, Record{Version: "1", Holder: theirs, TTL: time.Minute}), 115 * second, 45 * second},
		{"with a shorter TTL", fresh.Observe(100*second, Record{Version: "1", Holder: theirs, TTL: second}), 101 * second, 14 * second},
		{"expired and promised", promised(held("1", theirs)).Observe(100*second, held("1", theirs)), 114 * second, second},
		{"promised and found free", promised(held("1", "")).Observe(101*second, held("2", "")), 110 * second, 5 * second},
		{"promised, then given back", promised(held("1", theirs)).Observe(101*second, held("2", "")), 101 * second, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.s.UntilAcquirable(c.now); got != c.want || c.s.MayAcquire(c.now) != (c.want == 0) {
				t.Errorf("may in %s, want %s", got, c.want)
			}
		})
	}
}

func TestAnInstanceVouchesForWhomItKnowsNothingAgainst(t *testing.T) {
	q := Question{Instance: "c-2", Holder: theirs, Generation: 4}
	view := func(change func(*View)) View {
		v := View{Known: true, Generation: 4, Primary: "c-2", Instances: []string{"c-1", "c-2"}}
		change(&v)
		return v
	}
	seen := New(mine, DefaultTimes()).Observe(0, held("1", theirs))
	for _, c := range []struct {
		name    string
		s       State
		v       View
		vouches bool
		newer   bool
	}{
		{"all is well", seen, view(func(*View) {}), true, false},
		{"it has seen nothing yet", New(mine, DefaultTimes()), View{}, true, false},
		{"it saw the lease free", seen.Observe(1, held("2", "")), view(func(*View) {}), true, false},
		{"a later generation", seen, view(func(v *View) { v.Generation, v.Primary = 5, "c-3" }), false, true},
		{"a later generation of the holder itself", seen, view(func(v *View) { v.Generation = 5 }), true, false},
		{"an earlier one", seen, view(func(v *View) { v.Generation, v.Primary = 3, "c-3" }), true, false},
		{"a change away from it", seen, view(func(v *View) { v.Target, v.TargetGeneration = "c-3", 5 }), false, false},
		{"a change to it", seen, view(func(v *View) { v.Primary, v.Target, v.TargetGeneration = "c-3", "c-2", 5 }), true, false},
		{"a change that is over", seen, view(func(v *View) { v.Target, v.TargetGeneration = "c-3", 4 }), true, false},
		{"another primary", seen, view(func(v *View) { v.Primary = "c-3" }), false, false},
		{"another holder", seen.Observe(1, held("2", "c-3/c")), view(func(*View) {}), false, false},
		{"another Pod of that name", seen.Observe(1, held("2", "c-2/c")), view(func(*View) {}), false, false},
		{"it holds the lease", holder(), view(func(*View) {}), false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, a := c.s.Answer(100*second, "c-1", q, c.v)
			if a.Vouches != c.vouches || a.Newer != c.newer || (a.Why == "") != c.vouches || a.From != "c-1" || !slices.Equal(a.Instances, c.v.Instances) {
				t.Errorf("answer %+v", a)
			}
			to, left := s.Promised(100 * second)
			if c.vouches && (to != theirs || left != 15*second) || !c.vouches && to != "" {
				t.Errorf("promised to %q for %s", to, left)
			}
			if to, _ := s.Promised(115 * second); to != "" {
				t.Error("the promise does not end")
			}
		})
	}
}

func TestARoundIsUnanimousOnlyWhenEverybodyVouches(t *testing.T) {
	all := []string{"c-1", "c-2", "c-3"}
	yes := func(from string, lists ...string) Answer { return Answer{From: from, Vouches: true, Instances: lists} }
	for _, c := range []struct {
		name            string
		known, attached []string
		answers         []Answer
		unanimous       bool
		newer           bool
		ask             []string
	}{
		{"all vouch", all, nil, []Answer{yes("c-2"), yes("c-3")}, true, false, nil},
		{"nobody was asked yet", all, nil, nil, false, false, []string{"c-2", "c-3"}},
		{"one is silent", all, nil, []Answer{yes("c-2")}, false, false, []string{"c-3"}},
		{"one refuses", all, nil, []Answer{yes("c-2"), {From: "c-3", Why: "x"}}, false, false, nil},
		{"one knows more", all, nil, []Answer{{From: "c-2", Newer: true, Why: "x"}}, false, true, nil},
		{"one knows another instance", all, nil, []Answer{yes("c-2", "c-4"), yes("c-3")}, false, false, []string{"c-4"}},
		{"that one vouches too", all, nil, []Answer{yes("c-2", "c-4"), yes("c-3"), yes("c-4")}, true, false, nil},
		{"a replica that nobody knows", all, []string{"c-4"}, []Answer{yes("c-2"), yes("c-3"), yes("c-4")}, false, false, nil},
		{"a replica that knows itself", all, []string{"c-4"}, []Answer{yes("c-2"), yes("c-3"), yes("c-4", "c-4")}, true, false, nil},
		{"an answer of somebody else", all, nil, []Answer{yes("c-2"), yes("c-7")}, false, false, []string{"c-3"}},
		{"nobody else is there", []string{"c-1"}, nil, nil, true, false, nil},
		{"the list is not known", nil, nil, nil, false, false, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := Tally("c-1", c.known, c.attached, c.answers)
			if v.Unanimous != c.unanimous || v.Newer != c.newer || !slices.Equal(v.Ask, c.ask) || (v.Why == "") != c.unanimous {
				t.Errorf("verdict %+v", v)
			}
			if slices.Contains(v.Peers, "c-1") || !slices.IsSorted(v.Peers) {
				t.Errorf("peers %q", v.Peers)
			}
		})
	}
}
