package agent

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// ending is a world that is being stopped.
type ending struct {
	*world
	signals chan os.Signal
	ended   chan time.Duration // how long it took
}

// stop sends the first signal.
func (w *world) stop() *ending {
	w.t.Helper()
	e := w.mayStop()
	e.signals <- syscall.SIGTERM
	w.settle()
	return e
}

// mayStop waits for a signal, or finds that the Pod is to be stopped.
func (w *world) mayStop() *ending {
	w.t.Helper()
	e := &ending{world: w, signals: make(chan os.Signal, 2), ended: make(chan time.Duration, 1)}
	s := NewShutdown(ShutdownOptions{
		Name: self, Stopping: w.stopping, Instance: w.instance, Reader: w.server, Keeper: w.keeper, Watcher: w.watcher,
		NoRoom: w.reporter.NoRoom, Grace: w.grace, Peers: w.peers, Wake: func() { w.wake() }, Abandon: func() {}, Disconnect: func() {}, Log: discard(),
		Ordered: func(ctx context.Context) (bool, error) { return w.api.PodStopping(ctx, self, "") },
	})
	started := w.clock.Now()
	go func() {
		if err := s.Run(w.t.Context(), e.signals); err != nil {
			w.t.Errorf("shutdown: %v", err)
		}
		e.ended <- w.clock.Now() - started
	}()
	return e
}

func (e *ending) took() time.Duration {
	e.t.Helper()
	select {
	case d := <-e.ended:
		return d
	case <-time.After(time.Hour):
		e.t.Fatal("the shutdown does not end")
		return 0
	}
}

func TestAReplicaStopsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		if d := w.stop().took(); d > 100*time.Millisecond {
			t.Errorf("took %s", d)
		}
		w.wantSteps("stop")
	})
}

// The kubelet signals once, and what reaches process 1 before it listens is lost.
func TestAStopThatWasOrderedBeforeTheManagerListenedIsObeyed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		w.api.outage(false, true)
		w.api.setPodStopping()
		e := w.mayStop()
		time.Sleep(time.Minute)
		if w.instance.Gone() {
			t.Fatal("stopped before anybody said so")
		}
		w.api.outage(false, false)
		if d := e.took(); d > time.Minute+15*time.Second {
			t.Errorf("took %s", d)
		}
		w.wantSteps("stop")
	})
}

// Its own signal may still arrive, and is no second one.
func TestTheSignalOfAStopThatIsUnderWayIsNoHurry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		w.api.setPodStopping()
		e := w.mayStop()
		time.Sleep(5 * time.Second)
		e.signals <- syscall.SIGTERM
		time.Sleep(5 * time.Second)
		if !w.server.now().Writable() {
			t.Fatal("not writable while the operator has time")
		}
		e.signals <- syscall.SIGTERM
		if d := e.took(); d > 12*time.Second {
			t.Errorf("took %s after a second signal", d)
		}
	})
}

func TestAStoppingPrimaryWaitsForTheOperatorToMoveTheRole(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		e := w.stop()
		time.Sleep(3 * time.Second)
		if !w.server.now().Writable() {
			t.Fatal("not writable while the operator has time")
		}
		w.transition(api.TransitionSwitchover, self, "c-3")
		if d := e.took(); d > 4*time.Second {
			t.Errorf("took %s", d)
		}
		w.wantSteps("open writes", "demote", "stop")
		if a := w.api.annotations(); a[api.AnnotationHandoffAttempt] != "x1" || w.api.holder() != "" {
			t.Errorf("handoff %v, holder %q", a, w.api.holder())
		}
	})
}

func TestAStoppingPrimaryThatNobodyRelievesStepsDownByItself(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		if d := w.stop().took(); d < 30*time.Second || d > 32*time.Second {
			t.Errorf("took %s, want the smart shutdown timeout of 30 s", d)
		}
		w.wantSteps("open writes", "demote", "stop")
		if a := w.api.annotations(); a[api.AnnotationHandoffGTID] != uuidA+":1-100" || w.api.holder() != "" {
			t.Errorf("handoff %v, holder %q", a, w.api.holder())
		}
	})
}

func TestAPrimaryWithoutOthersDoesNotWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.api.change(func(s *api.ClusterStatus) { s.InstanceNames = []string{self} })
		w.start()
		if d := w.stop().took(); d > 500*time.Millisecond {
			t.Errorf("took %s", d)
		}
		w.wantSteps("open writes", "demote", "stop")
	})
}

func TestALeaseThatCannotBeGivenBackHoldsNoStopUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.api.change(func(s *api.ClusterStatus) { s.InstanceNames = []string{self} })
		w.start()
		w.api.outage(true, false)
		if d := w.stop().took(); d > releaseBound+handoffBound+time.Second {
			t.Errorf("took %s", d)
		}
	})
}

func TestAPodOfADeletedClusterWaitsForNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		w.api.outage(true, false) // its Lease is gone
		if err := w.watcher.take(watch.Event{Type: watch.Deleted, Object: &api.Cluster{}}); err != nil {
			t.Fatal(err)
		}
		if d := w.stop().took(); d > time.Second {
			t.Errorf("took %s", d)
		}
		w.wantSteps("open writes", "demote", "stop")
	})
}

func TestASecondSignalEndsTheWaiting(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		e := w.stop()
		time.Sleep(2 * time.Second)
		e.signals <- syscall.SIGTERM
		if d := e.took(); d > 3*time.Second {
			t.Errorf("took %s", d)
		}
		w.wantSteps("open writes", "demote", "stop")
	})
}

func TestAStoppedPrimaryWaitsForOneReplicaToHoldEverything(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.server.onStep = func(step string, m *protocol.MySQL) {
			if step == "demote" {
				m.Executed = gtids(t, uuidA+":1-100,"+uuidB+":1")
			}
		}
		w.start()
		e := w.stop()
		e.signals <- syscall.SIGTERM
		w.settle()
		// The second signal ends this wait, too.
		e.took()

		w = newWorld(t)
		w.primary()
		w.api.cluster.Spec.SmartShutdownTimeout = new(int32(0))
		w.server.onStep = func(step string, m *protocol.MySQL) {
			if step == "demote" {
				m.Executed = gtids(t, uuidA+":1-100,"+uuidB+":1")
			}
		}
		w.start()
		e = w.stop()
		time.Sleep(2 * time.Second)
		w.wantSteps("open writes", "demote")
		w.peers.say(t, "c-3", uuidC, 3, uuidA+":1-100,"+uuidB+":1")
		if d := e.took(); d > 3*time.Second {
			t.Errorf("took %s", d)
		}
		w.wantSteps("open writes", "demote", "stop")
	})
}

func TestAServerThatIsNotReadOnlyIsKilledNotStopped(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		w.server.mu.Lock()
		w.server.errs["demote"] = errors.New("it hangs")
		w.server.mu.Unlock()
		if d := w.stop().took(); d > 30*time.Second+stepDownBound+handoffBound+time.Second {
			t.Errorf("took %s", d)
		}
		w.wantSteps("open writes", "kill", "stop")
		if w.api.holder() != "" {
			t.Errorf("held by %q", w.api.holder())
		}
	})
}

func TestAServerThatAnswersNothingIsKilledSoon(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		w.server.mu.Lock()
		w.server.errs["demote"] = errors.New("it hangs")
		w.server.errs["read"] = errors.New("it hangs")
		w.server.mu.Unlock()
		if d := w.stop().took(); d < hangBound || d > hangBound+handoffBound {
			t.Errorf("took %s", d)
		}
		w.wantSteps("open writes", "kill", "stop")
		if w.api.holder() != "" {
			t.Errorf("held by %q", w.api.holder())
		}
	})
}

// Commits that wait for room on the volume keep the server from becoming read-only, and nobody is helped by waiting.
func TestAServerOnAFullVolumeIsKilledSoon(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.volumes = []protocol.Volume{{Name: protocol.VolumeData, SizeBytes: 1 << 30, AvailableBytes: 4096}} // judged to be full
		w.start()
		w.server.mu.Lock()
		w.server.errs["demote"] = errors.New("it waits for room")
		w.server.mu.Unlock()
		if d := w.stop().took(); d > hangBound+5*time.Second {
			t.Errorf("took %s", d)
		}
		w.wantSteps("open writes", "kill", "stop")
		if w.api.holder() != "" {
			t.Errorf("the lease is held by %q", w.api.holder())
		}
	})
}

func TestTheShutdownStaysWithinTheGracePeriod(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.api.cluster.Spec.MaxStopDelay = 20
		w.start()
		w.server.mu.Lock()
		w.server.errs["demote"] = errors.New("it hangs")
		w.server.mu.Unlock()
		w.api.outage(false, true)
		if d := w.stop().took(); d > 20*time.Second {
			t.Errorf("took %s of 20 s", d)
		}
	})
}

func TestTheGraceIsThatOfThePodAndNotWhatTheClusterSaysSince(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.grace = 20 * time.Second
		w.api.cluster.Spec.MaxStopDelay = 1800 // raised after the Pod was made
		w.start()
		w.server.mu.Lock()
		w.server.errs["demote"] = errors.New("it hangs")
		w.server.mu.Unlock()
		if d := w.stop().took(); d > 20*time.Second {
			t.Errorf("took %s of 20 s", d)
		}
	})
}

func TestATargetThatIsStoppedGivesTheLeaseBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.server.alter(func(m *protocol.MySQL) { m.Replication.Received = gtids(t, uuidA+":50-200") }) // much to apply
		w.start()
		w.api.hold("")
		w.transition(api.TransitionFailover, "c-1", self)
		w.settle()
		if w.api.holder() != self+"/1" {
			t.Fatal("the lease was not taken")
		}
		w.stop().took()
		synctest.Wait()
		if w.api.holder() != "" {
			t.Errorf("held by %q", w.api.holder())
		}
		if s := w.api.status(); s.CurrentPrimary != "c-1" {
			t.Errorf("claimed %+v", s)
		}
	})
}

// A server that does not start again must not keep its Pod for the whole grace period, which is half an hour.
func TestAPodWhoseServerIsNotRunningEndsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		w.server.become(protocol.ServerDown, 0)
		w.settle()
		if d := w.stop().took(); d > time.Second {
			t.Errorf("took %s", d)
		}
	})
}
