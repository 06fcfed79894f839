package agent

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/lease"
	"cnmsql.co/operator/instance/protocol"
)

// outage begins an outage of the API server just after a renewal, and returns that renewal.
func (k *keeping) outage(hanging bool) time.Duration {
	k.t.Helper()
	start := k.holds()
	time.Sleep(5 * time.Second)
	synctest.Wait()
	k.api.outage(!hanging, hanging)
	return start + 5*time.Second
}

func TestAnOutageOfTheAPIServerStopsNoWritesWhileAllOthersVouch(t *testing.T) {
	for name, hanging := range map[string]bool{"refusing": false, "hanging": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newKeeping(t)
				k.voters.vouch("a", "c")
				k.voters.latency = 300 * time.Millisecond
				last := k.outage(hanging)
				for range 600 {
					time.Sleep(time.Second)
					if s := k.keeper.State(); !s.Held || s.FencedFor >= 0 {
						t.Fatalf("%s after the last renewal: %+v", k.clock.Now()-last, s)
					}
				}
				synctest.Wait()
				if ro, killed, tries := k.fencer.seen(); ro != 0 || killed != 0 || tries != 0 {
					t.Error("fenced although all vouch")
				}
				s := k.keeper.State()
				if !s.Vouched || s.RenewedAgo < 9*time.Minute || !slices.Equal(s.Peers, []string{"a", "c"}) {
					t.Errorf("%+v", s)
				}
				first, rounds := k.voters.asked[0]-last, len(k.voters.asked)/2
				if first < 8*time.Second || first > 8100*time.Millisecond {
					t.Errorf("first asked %s after the last renewal", first)
				}
				if want := int((600 - 8) / 5); rounds < want || rounds > want+3 {
					t.Errorf("%d rounds, want about %d", rounds, want)
				}
				k.api.outage(false, false)
				time.Sleep(10 * time.Second)
				if s := k.keeper.State(); s.Vouched || !s.Held || s.RenewedAgo > 6*time.Second {
					t.Errorf("after the outage %+v", s)
				}
			})
		})
	}
}

func TestWithoutTheWordOfAllOthersTheServerIsReadOnlyAtTenSeconds(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(*testVoters)
	}{
		{"one is silent", func(v *testVoters) { v.vouch("a") }},
		{"one refuses", func(v *testVoters) {
			v.vouch("a", "c")
			v.say(protocol.VouchAnswer{From: "c", Why: "the role is going to c"})
		}},
		{"one that only another knows is silent", func(v *testVoters) {
			v.vouch("a", "c")
			v.say(protocol.VouchAnswer{From: "c", Vouches: true, Instances: []string{"d"}})
		}},
		{"a replica is attached that nobody knows", func(v *testVoters) {
			v.vouch("a", "c", "d")
			v.attached = []string{"c", "d"}
		}},
		{"all answer too late", func(v *testVoters) {
			v.vouch("a", "c")
			v.latency = 3 * time.Second
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newKeeping(t)
				c.make(k.voters)
				last := k.outage(false)
				time.Sleep(time.Minute)
				synctest.Wait()
				readOnly, killed, _ := k.fencer.seen()
				if d := readOnly - last; d < 9900*time.Millisecond || d > 10*time.Second || killed != 0 {
					t.Errorf("read-only %s after the last renewal, killed at %s", d, killed)
				}
			})
		})
	}
}

func TestOnePeerThatGoesIsNoticedWithinTheNextDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.voters.vouch("a", "c")
		last := k.outage(true)
		time.Sleep(60 * time.Second)
		synctest.Wait()
		lastWord := k.voters.asked[len(k.voters.asked)-1]
		k.voters.vouch("a")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		readOnly, _, _ := k.fencer.seen()
		if d := readOnly - lastWord; readOnly == 0 || d > 10*time.Second || readOnly-last < 60*time.Second {
			t.Errorf("read-only %s after all last vouched", d)
		}
	})
}

func TestAnInstanceThatOnlyAnotherKnowsIsAskedToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.voters.vouch("a", "c", "d")
		k.voters.say(protocol.VouchAnswer{From: "c", Vouches: true, Instances: []string{"a", "b", "d"}})
		k.voters.attached = []string{"a", "d"}
		k.outage(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s := k.keeper.State(); !s.Vouched || !slices.Equal(s.Peers, []string{"a", "c", "d"}) {
			t.Errorf("%+v", s)
		}
	})
}

func TestALaterPrimaryFencesAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.voters.vouch("a", "c")
		last := k.outage(false)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		k.voters.say(protocol.VouchAnswer{From: "c", Newer: true, Why: "c is the primary in generation 5"})
		told := k.clock.Now()
		time.Sleep(5100 * time.Millisecond)
		synctest.Wait()
		readOnly, _, _ := k.fencer.seen()
		if readOnly == 0 || readOnly-told > 5*time.Second || readOnly-last < 30*time.Second {
			t.Errorf("read-only %s after the other could be known", readOnly-told)
		}
		if s := k.keeper.State(); s.Held || s.FencedFor >= 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestWhoHasVouchedDoesNotTakeTheLeaseForFifteenSeconds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.api.hold("a/1")
		k.see()
		time.Sleep(14 * time.Second)
		a := k.keeper.Vouch(protocol.VouchQuestion{Instance: "a", Holder: "a/1", Generation: 5})
		if !a.Vouches || a.From != "b" || !slices.Contains(a.Instances, "c") {
			t.Fatalf("answer %+v", a)
		}
		time.Sleep(10 * time.Second)
		if f := k.keeper.Facts(); !f.Expired || f.PromisedTo != "a/1" {
			t.Errorf("facts %+v", f)
		}
		if err := k.keeper.Acquire(t.Context()); !errors.Is(err, errNotFree) || k.api.holder() != "a/1" {
			t.Errorf("held by %q: %v", k.api.holder(), err)
		}
		if left := k.keeper.UntilAcquirable(); left != 5*time.Second {
			t.Errorf("may in %s", left)
		}
		time.Sleep(5 * time.Second)
		if err := k.keeper.Acquire(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAPromiseEndsWhenTheLeaseIsGivenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.api.hold("a/1")
		k.see()
		k.keeper.Vouch(protocol.VouchQuestion{Instance: "a", Holder: "a/1", Generation: 5})
		k.api.hold("")
		k.see()
		if err := k.keeper.Acquire(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The whole instance: it stays writable through the outage, and everybody is told why.
func TestAPrimaryServesThroughAnOutageOfTheAPIServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.voters.vouch("c-1", "c-3")
		w.start()
		time.Sleep(time.Second)
		w.api.outage(false, true)
		for range 300 {
			time.Sleep(time.Second)
			if !w.server.now().Writable() {
				t.Fatalf("not writable at %s: %s", w.clock.Now(), w.reporter.Report().Role.Doing)
			}
		}
		r := w.reporter.Report()
		if !r.Lease.Held || !r.Lease.Vouched || !slices.Equal(r.Lease.Peers, []string{"c-1", "c-3"}) {
			t.Errorf("reports %+v", r.Lease)
		}
		w.voters.vouch("c-1")
		time.Sleep(15 * time.Second)
		if w.server.now().Writable() {
			t.Error("writable although an instance is silent")
		}
		w.api.outage(false, false)
		time.Sleep(10 * time.Second)
		if !w.server.now().Writable() {
			t.Errorf("not writable after the outage: %s", w.reporter.Report().Role.Doing)
		}
	})
}

// A transition that an instance has seen makes it refuse, and so ends the holder's time.
func TestAnInstanceThatSeesATransitionRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		q := protocol.VouchQuestion{Instance: "c-1", Holder: "c-1/1", Generation: 3}
		if a := w.keeper.Vouch(q); !a.Vouches {
			t.Fatalf("%+v", a)
		}
		w.transition(api.TransitionFailover, "c-1", "c-3")
		w.settle()
		if a := w.keeper.Vouch(q); a.Vouches || a.Newer {
			t.Errorf("%+v", a)
		}
		w.api.change(func(s *api.ClusterStatus) { s.CurrentPrimary, s.CurrentPrimaryGeneration = "c-3", 4 })
		w.settle()
		if a := w.keeper.Vouch(q); a.Vouches || !a.Newer {
			t.Errorf("%+v", a)
		}
	})
}

func TestATargetThatHasVouchedWaitsForItsPromise(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.server.alter(func(m *protocol.MySQL) { m.Replication.IORunning = false })
		w.start()
		time.Sleep(14 * time.Second)
		if a := w.keeper.Vouch(protocol.VouchQuestion{Instance: "c-1", Holder: "c-1/1", Generation: 3}); !a.Vouches {
			t.Fatalf("%+v", a)
		}
		promised := w.clock.Now()
		w.transition(api.TransitionFailover, "c-1", self)
		time.Sleep(14 * time.Second)
		if holder := w.api.holder(); holder != "c-1/1" {
			t.Errorf("held by %q before the promise has ended", holder)
		}
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		at, writes := w.server.at["open writes"]
		if !writes || at-promised < 15*time.Second {
			t.Errorf("opened %s after the promise: %s", at-promised, w.reporter.Report().Role.Doing)
		}
	})
}

func TestAnInstanceWithoutOthersGoesOnUnlessItsListIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		view lease.View
		held bool
	}{
		"alone":       {lease.View{Known: true, Generation: 4, Primary: "b", Instances: []string{"b"}}, true},
		"not known":   {lease.View{}, false},
		"not in list": {lease.View{Known: true, Generation: 4, Primary: "b"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newKeeping(t)
				k.keeper.o.View = func() lease.View { return c.view }
				k.outage(true)
				time.Sleep(time.Minute)
				synctest.Wait()
				if s := k.keeper.State(); s.Held != c.held || len(k.voters.asked) != 0 {
					t.Errorf("%+v, asked %d times", s, len(k.voters.asked))
				}
			})
		})
	}
}
