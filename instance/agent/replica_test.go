package agent

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

func TestAServerThatBecameWritableIsDemoted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		w.server.alter(func(m *protocol.MySQL) { m.ReadOnly, m.SuperReadOnly = false, false })
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		w.wantSteps("demote", "admit clients")
	})
}

func TestAHealthyReplicaIsQuiet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		w.server.mu.Lock()
		before := w.server.reads
		w.server.mu.Unlock()
		rounds := w.peers.rounds()
		for range 60 {
			time.Sleep(time.Second)
			w.server.alter(func(m *protocol.MySQL) {
				m.Replication.HeartbeatAgeMillis++
			})
			w.api.hold("c-1/1") // renewals of the primary
		}
		synctest.Wait()
		w.server.mu.Lock()
		reads := w.server.reads - before
		w.server.mu.Unlock()
		if reads > 80 {
			t.Errorf("%d reads in a minute", reads)
		}
		if w.peers.rounds() != rounds {
			t.Error("a healthy replica asks its peers")
		}
		w.wantSteps()
	})
}

func TestADivergedReplicaDoesNotSpin(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.server.alter(func(m *protocol.MySQL) {
			m.Executed = gtids(t, uuidA+":1-100,"+uuidB+":1-3")
			threads(m, false, false)
		})
		w.start()
		time.Sleep(time.Minute)
		rounds := w.peers.rounds()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := w.peers.rounds() - rounds; n > 15 {
			t.Errorf("asked %d times in a minute", n)
		}
		if got := w.reporter.Report().Role.Errant.String(); got != uuidB+":1-3" {
			t.Errorf("errant %q", got)
		}
		if w.peers.names[0] != "c-1" || len(w.peers.names) != 1 {
			t.Errorf("asked %v", w.peers.names)
		}
		w.wantSteps()
	})
}

func TestAFormerPrimaryWithoutThePluginToAcknowledgeFollowsAllTheSame(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.api.cluster.Spec.MinSyncReplicas = 1
		w.api.cluster.Spec.MySQL.SemiSync = &api.SemiSyncConfiguration{Enabled: true}
		w.server.alter(func(m *protocol.MySQL) {
			m.Replication = nil
			m.SemiSync = protocol.SemiSync{SourceEnabled: true, ReplicaMissing: true}
		})
		w.start()
		w.wantSteps("follow c-1.ns.svc", "semi-sync")
		if s := w.server.now().SemiSync; s.SourceEnabled || s.ReplicaEnabled {
			t.Errorf("semi-sync %+v", s)
		}
		if doing := w.reporter.Report().Role.Doing; !strings.Contains(doing, "semisync_replica is not loaded") {
			t.Errorf("doing: %s", doing)
		}
	})
}

func TestAStepThatFailsIsTriedAgainWithPauses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.server.alter(func(m *protocol.MySQL) { threads(m, false, false) })
		w.server.errs["start replica"] = errors.New("not now")
		w.start()
		time.Sleep(time.Minute)
		rounds := w.peers.rounds() // one for each try
		if rounds > 25 {
			t.Errorf("tried %d times in a minute", rounds)
		}
		w.server.mu.Lock()
		delete(w.server.errs, "start replica")
		w.server.mu.Unlock()
		time.Sleep(6 * time.Second)
		w.wantSteps("start replica")
	})
}

func TestABrokenChannelIsTriedAgainEveryHalfMinute(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.server.alter(func(m *protocol.MySQL) {
			threads(m, false, true)
			m.Replication.IOErrno = 13114
		})
		w.server.onStep = func(_ string, m *protocol.MySQL) { threads(m, false, true) } // it breaks again
		w.start()
		time.Sleep(29 * time.Second)
		w.wantSteps()
		time.Sleep(6 * time.Second)
		w.wantSteps("start replica")
		time.Sleep(30 * time.Second)
		w.wantSteps("start replica", "start replica")
	})
}

func TestAnOutageOfTheAPIServerDoesNotTouchAReplica(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		w.api.outage(true, false)
		w.api.endWatches()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		w.wantSteps()
		r := w.reporter.Report()
		if r.Role.Name != "replica" || r.Role.IntentAgeMillis < 290_000 || r.Lease.Fenced {
			t.Errorf("report %+v %+v", r.Role, r.Lease)
		}
		w.api.outage(false, false)
		w.transition(api.TransitionSwitchover, "c-1", "c-3")
		time.Sleep(8 * time.Second)
		if w.watcher.Cluster().Status.PrimaryTransition == nil {
			t.Error("the watch was not opened again")
		}
	})
}
