package agent

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnOutageMakesTheServerReadOnlyWithinTenSeconds(t *testing.T) {
	for name, outage := range map[string]func(*testAPI){
		"refusing": func(a *testAPI) { a.outage(true, false) },
		"hanging":  func(a *testAPI) { a.outage(false, true) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newKeeping(t)
				start := k.holds()
				time.Sleep(5 * time.Second)
				synctest.Wait() // the renewal of second 5 was the last
				outage(k.api)
				time.Sleep(20 * time.Second)
				synctest.Wait()
				readOnly, killed, _ := k.fencer.seen()
				if d := readOnly - start; d < 14*time.Second || d > 15*time.Second {
					t.Errorf("read-only after %s, counted from the last renewal at 5 s", d)
				}
				if killed != 0 {
					t.Error("a server that is read-only was killed")
				}
				if f := k.keeper.Facts(); f.InForce || !f.Mine {
					t.Errorf("facts %+v", f)
				}
				if s := k.keeper.State(); s.FencedFor < 9*time.Second {
					t.Errorf("fenced for %s", s.FencedFor)
				}
			})
		})
	}
}

func TestTheDeadlineCountsFromTheStartOfTheLastSuccess(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.api.latency = func() time.Duration { return 2 * time.Second }
		start := k.holds() // the answer comes at 2 s
		k.api.outage(true, false)
		time.Sleep(12 * time.Second)
		synctest.Wait()
		if readOnly, _, _ := k.fencer.seen(); readOnly-start > 10*time.Second || readOnly == 0 {
			t.Errorf("read-only after %s", readOnly-start)
		}
	})
}

func TestAServerThatDoesNotBecomeReadOnlyIsKilledWithinThirteenSeconds(t *testing.T) {
	for name, defect := range map[string]func(*testFencer){
		"it hangs": func(f *testFencer) { f.hangs = true },
		"it fails": func(f *testFencer) { f.err = errors.New("no connection") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newKeeping(t)
				defect(k.fencer)
				start := k.holds()
				k.api.outage(false, true)
				time.Sleep(30 * time.Second)
				synctest.Wait()
				readOnly, killed, tries := k.fencer.seen()
				if d := killed - start; d < 12*time.Second || d > 13*time.Second {
					t.Errorf("killed after %s", d)
				}
				if readOnly != 0 || tries == 0 {
					t.Errorf("read-only at %s after %d tries", readOnly, tries)
				}
			})
		})
	}
}

func TestAServerThatIsGoneNeedsNoFence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.fencer.gone, k.fencer.hangs = true, true
		k.holds()
		k.api.outage(true, false)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if _, killed, tries := k.fencer.seen(); killed != 0 || tries != 0 {
			t.Error("a server that is not there was fenced")
		}
	})
}

func TestAFenceEndsWithTheNextRenewal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.holds()
		k.api.outage(true, false)
		time.Sleep(20 * time.Second)
		if k.keeper.State().FencedFor < 0 {
			t.Fatal("not fenced")
		}
		k.api.outage(false, false)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if s := k.keeper.State(); !s.Held || s.FencedFor >= 0 {
			t.Errorf("%+v", s)
		}
		// A second outage is a second fence.
		before, _, _ := k.fencer.seen()
		k.api.outage(true, false)
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if after, _, _ := k.fencer.seen(); after == before {
			t.Error("the second outage was not fenced")
		}
	})
}

func TestAMachineThatSleptIsKilledAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.fencer.hangs = true
		k.holds()
		time.Sleep(time.Second)
		k.clock.suspend(time.Minute)
		woke := k.clock.Now()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		_, killed, _ := k.fencer.seen()
		if killed == 0 || killed-woke > 300*time.Millisecond {
			t.Errorf("killed %s after waking", killed-woke)
		}
	})
}

func TestALeaseThatAnotherHoldsIsLostAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.holds()
		time.Sleep(time.Second)
		k.keeper.observe(k.api.hold("c/1"), 0)
		seen := k.clock.Now()
		time.Sleep(time.Second)
		synctest.Wait()
		if readOnly, _, _ := k.fencer.seen(); readOnly != seen {
			t.Errorf("read-only %s after the other was seen", readOnly-seen)
		}
		if f := k.keeper.Facts(); f.Mine || f.InForce || f.Expired {
			t.Errorf("facts %+v", f)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if k.api.holder() != "c/1" {
			t.Error("the lost lease was taken back")
		}
	})
}

func TestALostLeaseKillsAServerThatHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.fencer.hangs = true
		k.holds()
		time.Sleep(time.Second)
		k.keeper.observe(k.api.hold("c/1"), 0)
		seen := k.clock.Now()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if _, killed, _ := k.fencer.seen(); killed == 0 || killed-seen > leaseTimes.LostKill {
			t.Errorf("killed %s after the other was seen", killed-seen)
		}
	})
}

func TestARenewalThatMeetsAnotherHolderLosesTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		start := k.holds()
		k.api.hold("c/1") // unseen
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if readOnly, _, _ := k.fencer.seen(); readOnly-start != 5*time.Second {
			t.Errorf("read-only after %s", readOnly-start)
		}
	})
}
