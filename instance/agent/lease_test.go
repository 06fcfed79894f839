package agent

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
)

const me = "b/1"

// keeping is a Keeper on an API server, which has seen the Lease.
type keeping struct {
	t      *testing.T
	clock  *testClock
	api    *testAPI
	fencer *testFencer
	voters *testVoters
	keeper *Keeper
}

func newKeeping(t *testing.T) *keeping {
	t.Helper()
	k := &keeping{t: t, clock: newTestClock()}
	k.api = newTestAPI(k.clock)
	k.fencer = &testFencer{clock: k.clock}
	k.voters = &testVoters{clock: k.clock}
	k.keeper = NewKeeper(KeeperOptions{
		API: k.api, Clock: k.clock, Instance: "b", Holder: me, Fencer: k.fencer, Changed: func() {}, Log: discard(),
		Voters: k.voters, Attached: k.voters.replicas, View: k.voters.view,
	})
	k.see()
	return k
}

// see tells the keeper of the Lease as it is.
func (k *keeping) see() {
	k.t.Helper()
	asked := k.clock.Now()
	l, err := k.api.Lease(k.t.Context())
	if err != nil {
		k.t.Fatal(err)
	}
	k.keeper.observe(l, asked)
}

// holds makes the keeper hold the lease, acquired just now, and run.
func (k *keeping) holds() time.Duration {
	k.t.Helper()
	start := k.clock.Now()
	if err := k.keeper.Acquire(k.t.Context()); err != nil {
		k.t.Fatal(err)
	}
	background(k.t, k.keeper.Run)
	return start
}

// bubble runs a test in a bubble of its own.
func bubble(t *testing.T, run func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, run)
}

func TestTheHolderRenewsEveryFiveSeconds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		start := k.holds()
		time.Sleep(21 * time.Second)
		synctest.Wait()
		var at []time.Duration
		for _, r := range k.api.renewals {
			at = append(at, r-start)
		}
		want := []time.Duration{0, 5 * time.Second, 10 * time.Second, 15 * time.Second, 20 * time.Second}
		if len(at) != len(want) {
			t.Fatalf("renewed at %v", at)
		}
		for i := range want {
			if at[i] != want[i] {
				t.Fatalf("renewed at %v", at)
			}
		}
		if ro, killed, _ := k.fencer.seen(); ro != 0 || killed != 0 {
			t.Error("a healthy holder was fenced")
		}
	})
}

// A healthy holder is one whose calls are answered within their timeout, with one lost now and then. An
// observer sees each change up to a second late and judges by its own clock.
func TestAHealthyHoldersLeaseNeverLooksExpired(t *testing.T) {
	for seed := range uint64(30) {
		bubble(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			k := newKeeping(t)
			k.holds()
			lost := 0
			k.api.mu.Lock()
			k.api.latency = func() time.Duration {
				if lost == 0 && random.IntN(4) == 0 {
					lost = 3
					return callTimeout + time.Second
				}
				lost = max(0, lost-1)
				return time.Duration(random.Int64N(int64(callTimeout / 2)))
			}
			k.api.mu.Unlock()
			observer := NewKeeper(KeeperOptions{API: k.api, Clock: k.clock, Instance: "c", Holder: "c/1", Fencer: k.fencer, Changed: func() {}, Log: discard()})
			background(t, func(ctx context.Context) error {
				for ctx.Err() == nil {
					k.api.mu.Lock()
					l := k.api.lease.DeepCopy()
					k.api.mu.Unlock()
					sleep(ctx, rand.N(time.Second))
					observer.observe(l, 0)
				}
				return nil
			})
			time.Sleep(time.Second)
			for range 600 {
				time.Sleep(500 * time.Millisecond)
				if f := observer.Facts(); f.Expired || f.Holder != me {
					t.Fatalf("seed %d: the lease looks expired at %s: %+v", seed, k.clock.Now(), f)
				}
				if !k.keeper.Facts().InForce {
					t.Fatalf("seed %d: a healthy holder lost its lease", seed)
				}
			}
		})
	}
}

func TestExpiryIsJudgedByOnesOwnClock(t *testing.T) {
	for name, renewTime := range map[string]time.Duration{"hours ago": -9 * time.Hour, "in hours": 9 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newKeeping(t)
				at := metav1.NewMicroTime(time.Now().Add(renewTime))
				k.api.hold("a/1")
				k.api.lease.Spec.RenewTime = &at
				k.see()
				time.Sleep(leaseTimes.TTL - time.Second)
				if k.keeper.Facts().Expired {
					t.Fatal("expired although it was not watched for a whole TTL")
				}
				if left := k.keeper.UntilAcquirable(); left != time.Second {
					t.Errorf("%s left", left)
				}
				k.api.hold("a/1") // a renewal starts the time anew
				k.see()
				time.Sleep(leaseTimes.TTL - time.Millisecond)
				if k.keeper.Facts().Expired {
					t.Fatal("expired although it was renewed")
				}
				time.Sleep(time.Millisecond)
				if !k.keeper.Facts().Expired {
					t.Error("not expired after a whole TTL without a renewal")
				}
			})
		})
	}
}

func TestTheLeaseIsTakenByTheRules(t *testing.T) {
	cases := []struct {
		name   string
		holder string
		watch  time.Duration
		free   bool
	}{
		{"free", "", 0, true},
		{"one's own of before a restart", me, 0, true},
		{"another's", "a/1", 0, false},
		{"another's, almost expired", "a/1", leaseTimes.TTL - time.Millisecond, false},
		{"another's, expired", "a/1", leaseTimes.TTL, true},
		{"of one's predecessor", "b/0", time.Second, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newKeeping(t)
				k.api.hold(c.holder)
				k.see()
				time.Sleep(c.watch)
				err := k.keeper.Acquire(t.Context())
				if (err == nil) != c.free {
					t.Fatalf("error %v", err)
				}
				if c.free != (k.api.holder() == me) {
					t.Errorf("held by %q", k.api.holder())
				}
				if f := k.keeper.Facts(); f.InForce != c.free {
					t.Errorf("facts %+v", f)
				}
			})
		})
	}
}

func TestTheLeaseIsNotTakenWhenItWasRenewedUnseen(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.api.hold("a/1")
		k.see()
		time.Sleep(leaseTimes.TTL)
		k.api.hold("a/1") // the watch is late
		if err := k.keeper.Acquire(t.Context()); err == nil {
			t.Fatal("taken from a healthy holder")
		}
		if f := k.keeper.Facts(); f.Expired {
			t.Error("still called expired after the conflict")
		}
		if k.api.holder() != "a/1" {
			t.Errorf("held by %q", k.api.holder())
		}
	})
}

func TestAReleaseRecordsTheHandoffAndKeepsTheLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.holds()
		executed, err := gtid.Parse("aaaaaaaa-0000-0000-0000-000000000001:1-9")
		if err != nil {
			t.Fatal(err)
		}
		if err := k.keeper.Release(t.Context(), &executed, "x1"); err != nil {
			t.Fatal(err)
		}
		if k.api.holder() != "" {
			t.Errorf("held by %q", k.api.holder())
		}
		a := k.api.annotations()
		if a[api.AnnotationHandoffGTID] != executed.String() || a[api.AnnotationHandoffAttempt] != "x1" {
			t.Errorf("handoff %v", a)
		}
		if f := k.keeper.Facts(); f.Handoff == nil || !f.Handoff.Equal(executed) || f.HandoffAttempt != "x1" {
			t.Errorf("facts %+v", f)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if k.api.holder() != "" {
			t.Error("a lease that was released is renewed")
		}
		if ro, killed, _ := k.fencer.seen(); ro != 0 || killed != 0 {
			t.Error("fenced after a release")
		}
		// The next holder keeps the handoff, and a release without one keeps it too.
		if err := k.keeper.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := k.keeper.Release(t.Context(), nil, ""); err != nil {
			t.Fatal(err)
		}
		if a := k.api.annotations(); a[api.AnnotationHandoffAttempt] != "x1" {
			t.Errorf("handoff %v", a)
		}
	})
}

func TestAReleaseThatIsSeenBeforeItsAnswerIsNoLoss(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.holds()
		k.api.mu.Lock()
		k.api.onLease = func() {
			go k.keeper.observe(k.api.lease.DeepCopy(), 0) // the watch is faster
			time.Sleep(time.Millisecond)
		}
		k.api.mu.Unlock()
		if err := k.keeper.Release(t.Context(), nil, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if ro, killed, _ := k.fencer.seen(); ro != 0 || killed != 0 {
			t.Error("fenced because of its own release")
		}
	})
}

func TestAReleaseThatFailedCanBeTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.holds()
		k.api.outage(true, false)
		if err := k.keeper.Release(t.Context(), nil, ""); err == nil {
			t.Fatal("released without an API server")
		}
		if f := k.keeper.Facts(); !f.Mine || f.InForce {
			t.Errorf("facts %+v", f)
		}
		k.api.outage(false, false)
		if err := k.keeper.Acquire(t.Context()); err != nil || !k.keeper.Facts().InForce {
			t.Errorf("%v, facts %+v", err, k.keeper.Facts())
		}
	})
}

func TestAReleaseThatMeetsAnotherHolderDoesNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.holds()
		k.api.hold("c/1")
		if err := k.keeper.Release(t.Context(), nil, ""); err != nil {
			t.Fatal(err)
		}
		if k.api.holder() != "c/1" {
			t.Errorf("held by %q", k.api.holder())
		}
	})
}

func TestARenewalWhoseAnswerWasLostDoesNotStandInTheWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.holds()
		k.api.mu.Lock()
		k.api.lost = 1
		k.api.mu.Unlock()
		time.Sleep(5*time.Second + 10*time.Millisecond) // the renewal got through, its answer did not
		synctest.Wait()
		if err := k.keeper.Release(t.Context(), nil, ""); err != nil {
			t.Fatal(err)
		}
		if k.api.holder() != "" {
			t.Errorf("held by %q", k.api.holder())
		}
	})
}

func TestAReleaseWaitsForTheRenewalUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		k.holds()
		k.api.mu.Lock()
		k.api.latency = func() time.Duration { return time.Second }
		k.api.mu.Unlock()
		time.Sleep(5*time.Second + 500*time.Millisecond) // a renewal is on its way
		if err := k.keeper.Release(t.Context(), nil, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if k.api.holder() != "" {
			t.Errorf("held by %q after the release", k.api.holder())
		}
	})
}

func TestAnOlderStateNeverReplacesANewerOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newKeeping(t)
		old := k.api.hold("")
		k.see()
		k.holds()
		k.keeper.observe(old, 0) // a watch that is behind
		if f := k.keeper.Facts(); !f.Mine || !f.InForce {
			t.Errorf("facts %+v", f)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if ro, _, _ := k.fencer.seen(); ro != 0 {
			t.Error("fenced because of an old event")
		}
	})
}
