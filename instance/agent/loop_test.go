package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

func TestTheFirstInstanceBecomesThePrimary(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.api.cluster.Status = api.ClusterStatus{InstanceNames: []string{self}}
		w.start()
		w.wantSteps()
		w.transition(api.TransitionBootstrap, "", self)
		w.settle()
		w.wantSteps("open writes")
		s := w.api.status()
		if s.CurrentPrimary != self || s.CurrentPrimaryGeneration != 1 || s.CurrentPrimaryServerUUID != uuidB || s.PromotionGTIDExecuted != uuidA+":1-100" || s.CurrentPrimaryTimestamp == nil {
			t.Errorf("claimed %+v", s)
		}
		if w.api.holder() != self+"/1" || !w.server.now().Writable() {
			t.Error("not the holder, or not writable")
		}
	})
}

func TestASwitchoverIsTakenOverWithEverythingTheOldPrimaryHad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		w.transition(api.TransitionSwitchover, "c-1", self)
		w.settle()
		w.wantSteps() // the old primary holds the lease

		// The old primary hands over two transactions that have not arrived yet.
		w.api.mu.Lock()
		l := w.api.lease.DeepCopy()
		l.Spec.HolderIdentity = nil
		l.Annotations = map[string]string{api.AnnotationHandoffGTID: uuidA + ":1-102", api.AnnotationHandoffAttempt: "x1"}
		w.api.storeLease(l)
		w.api.mu.Unlock()
		w.settle()
		w.wantSteps()
		if w.api.holder() != self+"/1" {
			t.Fatal("the free lease was not taken")
		}

		w.server.alter(func(m *protocol.MySQL) { m.Replication.Received = gtids(t, uuidA+":50-102") })
		w.settle()
		w.wantSteps("stop receiver")

		applied := w.clock.Now()
		w.server.alter(func(m *protocol.MySQL) { m.Executed = gtids(t, uuidA+":1-102") })
		w.settle()
		w.wantSteps("stop receiver", "open writes", "reset replica")
		if d := w.server.at["open writes"] - applied; d > 30*time.Millisecond {
			t.Errorf("writable %s after the last transaction was applied", d)
		}
		if got := w.api.status().PromotionGTIDExecuted; got != uuidA+":1-102" {
			t.Errorf("recorded %q", got)
		}
	})
}

func TestAFailoverTakesNoTimeWhenThereIsNothingToApply(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		delete(w.peers.reports, "c-1")
		w.peers.silence = time.Second // the lost node's address is silent
		w.start()
		w.api.hold("")
		decided := w.clock.Now()
		w.transition(api.TransitionFailover, "c-1", self)
		time.Sleep(3 * time.Second)
		synctest.Wait()
		w.wantSteps("stop receiver", "open writes", "reset replica")
		if d := w.server.at["open writes"] - decided; d > time.Second+20*time.Millisecond {
			t.Errorf("writable after %s, with one silent peer to wait for once", d)
		}
	})
}

func TestWritesAreOpenedOnlyAfterTheClaimIsStored(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		var claimed bool
		w.server.onStep = func(step string, _ *protocol.MySQL) {
			if step == "open writes" && !claimed {
				t.Error("opened before the claim")
			}
		}
		w.api.onUpdate = func(c *api.Cluster) { claimed = claimed || c.Status.CurrentPrimary == self }
		w.start()
		w.api.hold("")
		w.transition(api.TransitionFailover, "c-1", self)
		w.settle()
		w.wantSteps("stop receiver", "open writes", "reset replica")
	})
}

func TestAClaimWhoseAnswerWasLostIsFoundInTheCluster(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		w.api.hold("")
		w.server.onStep = func(step string, _ *protocol.MySQL) {
			if step == "stop receiver" { // the next call that writes is the claim
				w.api.mu.Lock()
				w.api.lost = 1
				w.api.mu.Unlock()
			}
		}
		w.transition(api.TransitionFailover, "c-1", self)
		time.Sleep(time.Second)
		w.settle()
		w.wantSteps("stop receiver", "open writes", "reset replica")
		if s := w.api.status(); s.CurrentPrimaryGeneration != 4 {
			t.Errorf("generation %d", s.CurrentPrimaryGeneration)
		}
	})
}

func TestAClaimIsNotHeldUpByAWriteOfSomethingElse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		tries := 0
		w.api.onWrite = func() {
			if tries++; tries < claimTries {
				w.api.change(func(s *api.ClusterStatus) { s.PhaseReason = fmt.Sprint(tries) })
			}
		}
		w.start()
		w.api.hold("")
		w.transition(api.TransitionFailover, "c-1", self)
		w.settle()
		w.wantSteps("stop receiver", "open writes", "reset replica")
		if s := w.api.status(); s.PhaseReason != fmt.Sprint(claimTries-1) || s.CurrentPrimary != self {
			t.Errorf("status %+v", s)
		}
		if rounds := w.peers.rounds(); rounds != 1 {
			t.Errorf("the peers were asked %d times", rounds)
		}
	})
}

func TestATransitionThatWasWithdrawnIsNotClaimed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		w.api.hold("")
		w.server.onStep = func(step string, _ *protocol.MySQL) {
			if step == "stop receiver" { // just before the claim, unseen by the watch
				w.api.mu.Lock()
				defer w.api.mu.Unlock()
				w.api.cluster = w.api.cluster.DeepCopy()
				w.api.cluster.Status.PrimaryTransition = nil
				w.api.cluster.ResourceVersion = w.api.next()
			}
		}
		w.transition(api.TransitionFailover, "c-1", self)
		time.Sleep(2 * time.Second)
		w.settle()
		if s := w.api.status(); s.CurrentPrimary != "c-1" || s.CurrentPrimaryGeneration != 3 {
			t.Fatalf("claimed %+v", s)
		}
		if w.server.now().Writable() || w.api.holder() == self+"/1" {
			t.Error("writable, or still the holder")
		}
		w.wantSteps("stop receiver", "start replica") // it follows the old primary again
	})
}

func TestAPromotionIsRefusedForTheAttemptWhenAnotherHoldsMore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.peers.say(t, "c-3", uuidC, 3, uuidA+":1-101")
		w.start()
		w.api.hold("")
		w.transition(api.TransitionFailover, "c-1", self)
		w.settle()
		r := w.reporter.Report().Role
		if r.PromotionRefusedAttempt != "x1" || !strings.Contains(r.PromotionRefused, "c-3 holds 1 transaction") {
			t.Fatalf("role %+v", r)
		}
		if w.api.holder() != "" {
			t.Error("the lease was not given back")
		}
		rounds := w.peers.rounds()
		time.Sleep(time.Minute)
		if w.peers.rounds() != rounds || w.api.holder() != "" {
			t.Error("the refused attempt was looked at again")
		}
		w.peers.say(t, "c-3", uuidC, 3, uuidA+":1-100")
		w.api.change(func(s *api.ClusterStatus) { s.PrimaryTransition.Attempt = "x2" })
		w.settle()
		if s := w.api.status(); s.CurrentPrimary != self {
			t.Errorf("another attempt was not taken: %+v", w.reporter.Report().Role)
		}
	})
}

func TestAPrimaryHandsOverInOrderAndFollows(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		w.wantSteps("open writes")
		w.server.onStep = func(step string, m *protocol.MySQL) {
			if step == "demote" { // a last commit before it is read-only
				m.Executed = gtids(t, uuidA+":1-100,"+uuidB+":1")
			}
		}
		asked := w.clock.Now()
		w.transition(api.TransitionSwitchover, self, "c-3")
		w.settle()
		w.wantSteps("open writes", "demote")
		a := w.api.annotations()
		if a[api.AnnotationHandoffGTID] != uuidA+":1-100,"+uuidB+":1" || a[api.AnnotationHandoffAttempt] != "x1" {
			t.Errorf("handoff %v", a)
		}
		if w.api.holder() != "" || w.api.renewals[len(w.api.renewals)-1]-asked > 10*time.Millisecond {
			t.Error("the lease was not released at once")
		}
		w.peers.say(t, "c-3", uuidC, 4, uuidA+":1-100,"+uuidB+":1")
		w.api.change(func(s *api.ClusterStatus) { s.CurrentPrimary, s.CurrentPrimaryGeneration = "c-3", 4 })
		w.settle()
		w.wantSteps("open writes", "demote", "follow c-3.ns.svc")
		// Clients of the primary may be led here for a moment.
		time.Sleep(routesLag - 500*time.Millisecond)
		w.wantSteps("open writes", "demote", "follow c-3.ns.svc")
		time.Sleep(2 * lastWait)
		w.wantSteps("open writes", "demote", "follow c-3.ns.svc", "admit clients")
	})
}

func TestAnAbortedSwitchoverGivesTheOldPrimaryItsRoleBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		w.transition(api.TransitionSwitchover, self, "c-3")
		w.settle()
		w.api.change(func(s *api.ClusterStatus) { s.PrimaryTransition = nil })
		w.settle()
		w.wantSteps("open writes", "demote", "open writes")
		if s := w.api.status(); s.CurrentPrimaryGeneration != 3 {
			t.Errorf("generation %d", s.CurrentPrimaryGeneration)
		}
	})
}

func TestAPrimaryWhoseServerDiedReleasesAndResumes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		w.server.become(protocol.ServerDown, 0)
		w.settle()
		if w.api.holder() != "" {
			t.Error("the lease is kept by a server that is not there")
		}
		if r := w.reporter.Report(); r.MySQL != nil || r.Server.State != protocol.ServerDown {
			t.Errorf("report %+v", r)
		}
		w.server.become(protocol.ServerStarting, 9)
		w.settle()
		w.server.become(protocol.ServerRunning, 9)
		w.settle()
		w.wantSteps("open writes", "open writes")
		if s := w.api.status(); s.CurrentPrimaryGeneration != 3 {
			t.Errorf("generation %d", s.CurrentPrimaryGeneration)
		}
	})
}

func TestAPrimaryThatLostItsTailDoesNotResume(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.peers.say(t, "c-3", uuidC, 3, uuidA+":1-100,"+uuidB+":1-2")
		w.start()
		w.wantSteps()
		r := w.reporter.Report().Role
		if !strings.Contains(r.ResumeRefused, "c-3 holds 2 transactions") || w.api.holder() != "" {
			t.Fatalf("role %+v, holder %q", r, w.api.holder())
		}
		rounds := w.peers.rounds()
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if n := w.peers.rounds() - rounds; n < 2 || n > 4 {
			t.Errorf("looked at %d more times in 35 s, want every 10 s", n)
		}
		w.wantSteps()
	})
}

func TestAPrimaryResumesAfterItsOwnFence(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		w.api.outage(false, true)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if w.server.now().Writable() {
			t.Fatal("writable without a lease")
		}
		if w.server.now().Offline {
			t.Error("a fence refuses those who only read")
		}
		if r := w.reporter.Report(); !r.Lease.Fenced || r.Lease.Held {
			t.Errorf("lease %+v", r.Lease)
		}
		w.api.outage(false, false)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if !w.server.now().Writable() {
			t.Errorf("not writable again: %s", w.reporter.Report().Role.Doing)
		}
		if r := w.reporter.Report(); r.Lease.Fenced || !r.Lease.Held {
			t.Errorf("lease %+v", r.Lease)
		}
	})
}

func TestWritesAreNotOpenedWithALeaseThatRunsOut(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.server.errs["open writes"] = errors.New("not now")
		w.start()
		w.api.outage(false, true)
		time.Sleep(8500 * time.Millisecond) // 1.5 s are left
		w.server.mu.Lock()
		delete(w.server.errs, "open writes")
		w.server.mu.Unlock()
		if err := w.loop.open(context.Background()); !errors.Is(err, errStale) {
			t.Errorf("error %v", err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if w.server.now().Writable() {
			t.Error("opened without a lease")
		}
	})
}

func TestTheAPIServerIsAskedOnceMoreBeforeWritesAreOpened(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.peers.onAsk = func() { // the operator moves the role, and the watch is late
			w.api.mu.Lock()
			defer w.api.mu.Unlock()
			w.api.cluster = w.api.cluster.DeepCopy()
			w.api.cluster.Status.PrimaryTransition = &api.PrimaryTransition{Attempt: "x1", Kind: api.TransitionSwitchover, From: self, To: "c-3", Generation: 4}
			w.api.cluster.ResourceVersion = w.api.next()
		}
		w.start()
		w.wantSteps()
		if w.api.holder() != "" {
			t.Error("the lease was not handed over")
		}
	})
}

func TestAnswersOfBeforeTheLeaseDoNotCountAsLater(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.keeper.observe(w.api.hold(""), 0)
		w.loop.peers, w.loop.asked = &role.Peers{}, w.clock.Now()
		time.Sleep(time.Second)
		if err := w.keeper.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if w.loop.answers(w.clock.Now()).SinceLease {
			t.Error("asked before the lease was taken")
		}
		w.loop.asked = w.clock.Now()
		if !w.loop.answers(w.clock.Now()).SinceLease {
			t.Error("asked after the lease was taken")
		}
		time.Sleep(answersLast + time.Second)
		if w.loop.answers(w.clock.Now()) != nil {
			t.Error("old answers are kept")
		}
	})
}

func TestTheOperatorSetsTheAcknowledgementsOfAWritablePrimaryOnly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.acknowledgedPrimary()
		ask := func(n int, generation int64) error {
			return w.loop.SetSemiSync(t.Context(), protocol.SemiSyncSettings{WaitFor: n, Generation: generation})
		}
		if err := ask(2, 3); !errors.Is(err, ErrRefused) {
			t.Errorf("before anything is known: %v", err)
		}
		w.start()
		w.wantSteps("semi-sync", "open writes")
		for _, c := range []struct {
			n          int
			generation int64
		}{{2, 2}, {2, 4}, {0, 3}} {
			if err := ask(c.n, c.generation); !errors.Is(err, ErrRefused) {
				t.Errorf("%+v: %v", c, err)
			}
		}
		if err := ask(2, 3); err != nil {
			t.Fatal(err)
		}
		if s := w.server.now().SemiSync; !s.SourceEnabled || s.WaitFor != 2 {
			t.Errorf("semi-sync %+v", s)
		}
		time.Sleep(10 * time.Second)
		if s := w.server.now().SemiSync; s.WaitFor != 2 {
			t.Error("the role loop has put the count back")
		}
		w.server.alter(func(m *protocol.MySQL) { m.ReadOnly, m.SuperReadOnly = true, true })
		if err := ask(1, 3); !errors.Is(err, ErrRefused) {
			t.Errorf("while read-only: %v", err)
		}
	})
}

// Commits that wait are let go when the operator asks for it, and the server is open again without anybody having to agree
// to it.
func TestThePrimaryLetsCommitsGoThatNobodyCanAcknowledge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.acknowledgedPrimary()
		w.start()
		w.wantSteps("semi-sync", "open writes")
		ask := func() {
			t.Helper()
			if err := w.loop.SetSemiSync(t.Context(), protocol.SemiSyncSettings{WaitFor: 1, Generation: 3, LetGo: true}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		ask()
		w.wantSteps("semi-sync", "open writes", "semi-sync") // none waits: the count is set and nothing else
		w.server.alter(func(m *protocol.MySQL) { m.SemiSync.SourceActive, m.SemiSync.Waiting = true, 2 })
		time.Sleep(10 * time.Second)
		w.wantSteps("semi-sync", "open writes", "semi-sync") // the wish is old
		ask()
		w.wantSteps("semi-sync", "open writes", "semi-sync", "semi-sync", "demote", "semi-sync", "open writes")
		if w.loop.Reasserts() != 0 {
			t.Error("it is counted as closed by somebody else")
		}
		if m := w.server.now(); !m.Writable() || m.Offline || !m.SemiSync.SourceEnabled {
			t.Errorf("%+v", m)
		}
	})
}

// A step-down that fails leaves the server open. Whoever closes it after that is somebody else still.
func TestAFailedStepDownDoesNotHideThatSomebodyElseClosesTheServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.acknowledgedPrimary()
		w.start()
		w.server.alter(func(m *protocol.MySQL) { m.SemiSync.SourceActive, m.SemiSync.Waiting = true, 2 })
		w.server.errs["demote"] = errors.New("a session holds the lock")
		if err := w.loop.SetSemiSync(t.Context(), protocol.SemiSyncSettings{WaitFor: 1, Generation: 3, LetGo: true}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if m := w.server.now(); !m.Writable() {
			t.Fatalf("%+v", m)
		}
		w.server.alter(func(m *protocol.MySQL) { m.ReadOnly, m.SuperReadOnly, m.SemiSync.Waiting = true, true, 0 })
		w.loop.Wake()
		time.Sleep(3 * time.Second)
		if n := w.loop.Reasserts(); n != 1 {
			t.Errorf("opened %d times as one that somebody else had closed; doing: %s", n, w.reporter.Report().Role.Doing)
		}
	})
}
