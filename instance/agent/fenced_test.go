package agent

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// fence takes this instance out of service, or back.
func (w *world) fence(on bool) {
	w.api.change(func(s *api.ClusterStatus) {
		s.FencedInstances = nil
		if on {
			s.FencedInstances = []string{self}
		}
	})
	w.settle()
}

func TestAFencedPrimaryHandsOverAndStopsItsServer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		w.wantSteps("open writes")
		w.fence(true)
		w.wantSteps("open writes", "demote", "prepare stop", "hold 30m0s")
		w.api.mu.Lock()
		handoff := w.api.lease.Annotations[api.AnnotationHandoffGTID]
		w.api.mu.Unlock()
		if w.api.holder() != "" || handoff != uuidA+":1-100" {
			t.Errorf("the lease is held by %q, with the handoff %q", w.api.holder(), handoff)
		}
		if r := w.reporter.Report(); r.Server.State != protocol.ServerFenced || r.Role.Doing != "fenced: the server is stopped" {
			t.Errorf("report %+v, %+v", r.Server, r.Role)
		}
		if s := w.api.status(); s.CurrentPrimary != self || s.CurrentPrimaryGeneration != 3 {
			t.Errorf("status %+v", s)
		}

		// Nobody was promoted meanwhile: it takes up its role again.
		w.fence(false)
		w.wantSteps("open writes", "demote", "prepare stop", "hold 30m0s", "release", "open writes")
		if w.api.holder() != self+"/1" {
			t.Errorf("the lease is held by %q", w.api.holder())
		}
	})
}

func TestAFencedPrimaryWaitsALittleForAReplicaThatHoldsEverything(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		w.server.alter(func(m *protocol.MySQL) { m.Executed = gtids(t, uuidA+":1-100,"+uuidB+":1-2") })
		w.fence(true)
		w.wantSteps("open writes", "demote")
		if w.api.holder() != "" {
			t.Error("it keeps the lease while it waits")
		}
		began := w.clock.Now()
		time.Sleep(handoffBound + 2*time.Second)
		synctest.Wait()
		w.wantSteps("open writes", "demote", "prepare stop", "hold 30m0s")
		if waited := w.server.at["prepare stop"] - began; waited < handoffBound-100*time.Millisecond || waited > handoffBound+1100*time.Millisecond {
			t.Errorf("it waited %s", waited)
		}
	})
}

func TestAFencedServerThatHangsIsKilled(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		w.server.mu.Lock()
		w.server.hangs = true
		w.server.mu.Unlock()
		w.fence(true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if steps := w.server.done(); !slices.Contains(steps, "hold 0s") {
			t.Errorf("steps %q", steps)
		}
		if w.api.holder() != "" {
			t.Errorf("the lease is held by %q", w.api.holder())
		}
	})
}

// A commit that waits for room on its volume keeps it from becoming read-only, and nobody can promote another meanwhile.
func TestAFencedServerThatDoesNotCloseIsKilled(t *testing.T) {
	for _, full := range []bool{true, false} {
		bubble(t, func(t *testing.T) {
			w := newWorld(t)
			w.primary()
			bound := stepDownBound
			if full {
				w.volumes, bound = []protocol.Volume{{Name: protocol.VolumeData, AvailableBytes: 4096}}, hangBound
			}
			w.start()
			w.server.mu.Lock()
			w.server.errs["demote"] = errors.New("a commit is under way")
			w.server.mu.Unlock()
			began := w.clock.Now()
			w.fence(true)
			for w.server.State().Pid != 0 && w.clock.Now()-began < 5*time.Minute {
				w.settle()
			}
			w.settle()
			if took := w.clock.Now() - began; took < bound || took > bound+10*time.Second {
				t.Errorf("full %t: it took %s", full, took)
			}
			w.wantSteps("open writes", "hold 0s")
			if w.api.holder() != "" {
				t.Errorf("the lease is held by %q", w.api.holder())
			}
		})
	}
}

// While its data are being made, whatever runs there is not the instance's server.
func TestAFenceLeavesTheMakingOfDataAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		w.instance.mu.Lock()
		w.instance.ready = false
		w.instance.mu.Unlock()
		w.fence(true)
		w.wantSteps()
		w.instance.Provisioned()
		w.settle()
		w.wantSteps("prepare stop", "hold 30m0s")
	})
}
