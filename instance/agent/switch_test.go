package agent

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// testSwitch is a dead man's switch that only remembers.
type testSwitch struct {
	mu     sync.Mutex
	at     time.Duration // 0 when disarmed
	broken bool
}

func (s *testSwitch) Arm(at time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.at = at
}

func (s *testSwitch) Disarm() { s.Arm(0) }

func (s *testSwitch) Trusted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.broken
}

func (s *testSwitch) set() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.at
}

func TestTheSwitchIsArmedWithTheLeaseAndMovesWithEachConfirmation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		s := &testSwitch{}
		k.keeper.o.Switch = s
		k.voters.vouch("a", "c")
		start := k.holds()
		if got := s.set(); got != start+leaseTimes.Kill {
			t.Fatalf("armed for %s", got-start)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if got := s.set(); got != start+5*time.Second+leaseTimes.Kill {
			t.Fatalf("after a renewal armed for %s", got-start)
		}
		k.api.outage(true, false)
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if left := s.set() - k.clock.Now(); left < leaseTimes.Kill-leaseTimes.VouchEvery-time.Second {
			t.Fatalf("by the word of the others armed for %s", left)
		}
		k.voters.vouch()
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if readOnly, _, _ := k.fencer.seen(); readOnly == 0 || s.set() != 0 {
			t.Fatalf("armed for %s although the server is read-only", s.set())
		}
		k.api.outage(false, false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s.set() == 0 {
			t.Fatal("not armed although the lease is in force again")
		}
		if err := k.keeper.Release(t.Context(), nil, ""); err != nil || s.set() != 0 {
			t.Fatalf("armed after the release: %v", err)
		}
	})
}

func TestTheSwitchStaysArmedUntilTheServerIsKnownToBeHarmless(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		s := &testSwitch{}
		k.keeper.o.Switch = s
		k.fencer.hangs = true
		start := k.holds()
		k.api.outage(true, false)
		time.Sleep(12900 * time.Millisecond)
		synctest.Wait()
		if got := s.set(); got != start+leaseTimes.Kill {
			t.Fatalf("armed for %s while the fence goes on", got-start)
		}
	})
}

func TestAPrimaryWithoutAWatchdogGivesUpItsRole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		s := &testSwitch{}
		w.keeper.o.Switch = s
		w.primary()
		w.start()
		time.Sleep(time.Second)
		if !w.server.now().Writable() {
			t.Fatal(w.reporter.Report().Role.Doing)
		}
		s.mu.Lock()
		s.broken = true
		s.mu.Unlock()
		time.Sleep(10 * time.Second)
		r := w.reporter.Report()
		if w.server.now().Writable() || w.api.holder() != "" || r.Role.ResumeRefused == "" {
			t.Fatalf("held by %q, role %+v", w.api.holder(), r.Role)
		}
		s.mu.Lock()
		s.broken = false
		s.mu.Unlock()
		if !w.opensWithin(15 * time.Second) {
			t.Errorf("%s", w.reporter.Report().Role.Doing)
		}
		if n := w.reporter.Report().Role.Reasserts; n != 0 || !w.reporter.Report().MySQL.Writable() {
			t.Errorf("%d re-asserts", n)
		}
	})
}
