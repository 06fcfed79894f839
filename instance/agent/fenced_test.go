package agent

import (
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
		time.Sleep(handoverFor + 2*time.Second)
		synctest.Wait()
		w.wantSteps("open writes", "demote", "prepare stop", "hold 30m0s")
		if waited := w.server.at["prepare stop"] - began; waited < handoverFor-100*time.Millisecond || waited > handoverFor+1100*time.Millisecond {
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
