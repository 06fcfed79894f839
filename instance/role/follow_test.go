package role_test

import (
	"testing"

	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// newPrimary makes c the primary, which was asked and holds everything; b still follows a.
func newPrimary(s *scenario) {
	s.i.CurrentPrimary, s.i.Generation = "c", 4
	s.f.MySQL.Replication.IORunning, s.f.MySQL.Replication.SQLRunning = false, false
	s.f.Peers = &role.Peers{Answers: []role.Peer{
		{Instance: "c", ServerUUID: "cccccccc-0000-0000-0000-000000000003", Generation: 4, Executed: s.set(uuidA + ":1-110"), Held: s.set(uuidA + ":1-110")},
	}}
}

func TestAReplicaFollowsThePrimary(t *testing.T) {
	runCases(t, []ruleCase{
		{"a healthy one is left alone", healthyReplica, nil, role.Rest, nil},
		{"it acknowledges where that is configured", healthyReplica, func(s *scenario) { s.f.SemiSync = true }, role.Acknowledge, nil},
		{"it waits for no acknowledgements of its own", healthyReplica, func(s *scenario) {
			s.f.SemiSync = true
			s.f.MySQL.SemiSync = protocol.SemiSync{SourceEnabled: true, ReplicaEnabled: true}
		}, role.ReplicaSemiSync, nil},
		{"a former primary acknowledges before it follows", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.SemiSync, s.f.MySQL.Replication = true, nil
			s.f.MySQL.SemiSync.SourceEnabled = true
		}, role.Acknowledge, nil},
		{"and stops waiting for acknowledgements once it follows", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.SemiSync, s.f.MySQL.Replication = true, nil
			s.f.MySQL.SemiSync = protocol.SemiSync{SourceEnabled: true, ReplicaEnabled: true}
		}, role.Follow, nil},
		{"at the latest when it is led elsewhere before it has applied everything", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Replication.SQLRunning = true
			s.f.MySQL.Replication.Received = s.set(uuidA + ":50-105")
			s.f.MySQL.SemiSync = protocol.SemiSync{SourceEnabled: true, ReplicaEnabled: true}
		}, role.ReplicaSemiSync, nil},
		{"or before it applies the rest while the primary is not reachable", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.Peers.Answers = nil
			s.f.MySQL.Replication.SourceHost = "c.ns.svc"
			s.f.MySQL.Replication.Received = s.set(uuidA + ":50-105")
			s.f.MySQL.SemiSync = protocol.SemiSync{SourceEnabled: true, ReplicaEnabled: true}
		}, role.ReplicaSemiSync, nil},
		{"a new one compares first", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Replication, s.f.Peers = nil, nil
		}, role.AskPeers, nil},
		{"then it follows", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Replication = nil
		}, role.Follow, func(t *testing.T, _ *scenario, d role.Decision) {
			if d.Step.Source != "c" {
				t.Errorf("follows %q", d.Step.Source)
			}
		}},
		{"it lets clients in that its server refused at its start", healthyReplica, func(s *scenario) { s.f.MySQL.Offline = true }, role.AdmitClients, nil},
		{"not while clients of the primary may be led here", healthyReplica, func(s *scenario) { s.f.MySQL.Offline, s.f.LatelyPrimary = true, true }, role.Wait, nil},
		{"not before it follows", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Offline = true
			s.f.Peers.Answers = nil
		}, role.Wait, nil},
		{"one that stopped without an error is started", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Replication.SourceHost = "c.ns.svc"
		}, role.StartReplica, nil},
		{"a primary that does not answer is waited for", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.Peers.Answers = nil
		}, role.Wait, nil},
		{"meanwhile what was received is applied", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.Peers.Answers = nil
			s.f.MySQL.Replication.SourceHost = "c.ns.svc"
			s.f.MySQL.Replication.Received = s.set(uuidA + ":50-105")
		}, role.StartApplier, nil},
		{"a primary of another generation is waited for", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.Peers.Answers[0].Generation = 3
		}, role.Wait, nil},
	})
}

func TestAReplicaLeavesTheFormerPrimaryWithEverythingApplied(t *testing.T) {
	runCases(t, []ruleCase{
		{"the receiver is stopped while there is something to apply", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Replication.IORunning, s.f.MySQL.Replication.SQLRunning = true, true
			s.f.MySQL.Replication.Received = s.set(uuidA + ":50-105")
		}, role.StopReceiver, nil},
		{"nothing is stopped before the new one is known to be good", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Replication.IORunning, s.f.MySQL.Replication.SQLRunning = true, true
			s.f.Peers = nil
		}, role.AskPeers, nil},
		{"nothing is received from the former primary while the new one does not answer", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Replication.IORunning, s.f.MySQL.Replication.SQLRunning = true, true
			s.f.Peers.Answers = nil
		}, role.StopReceiver, nil},
		{"then one step leaves and follows, unless more is received meanwhile", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Replication.IORunning, s.f.MySQL.Replication.SQLRunning = true, true
		}, role.Follow, func(t *testing.T, s *scenario, d role.Decision) {
			if d.Step.Executed == nil || !d.Step.Executed.Equal(s.f.MySQL.Held()) {
				t.Errorf("compared %v", d.Step.Executed)
			}
		}},
		{"the rest is applied", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Replication.SQLRunning = true
			s.f.MySQL.Replication.Received = s.set(uuidA + ":50-105")
		}, role.Wait, nil},
		{"by an applier that runs", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Replication.Received = s.set(uuidA + ":50-105")
		}, role.StartApplier, nil},
		{"an applier that cannot keeps its relay log", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Replication.Received = s.set(uuidA + ":50-105")
			s.f.MySQL.Replication.SQLErrno, s.f.RetryDue = 1062, true
		}, role.Wait, nil},
		{"then it follows the new one", healthyReplica, newPrimary, role.Follow, nil},
	})
}

func TestABrokenChannelIsTriedAgainAfterAPause(t *testing.T) {
	broken := func(s *scenario) {
		newPrimary(s)
		s.f.MySQL.Replication.SourceHost = "c.ns.svc"
		s.f.MySQL.Replication.IOErrno = 13114
	}
	runCases(t, []ruleCase{
		{"not before", healthyReplica, broken, role.Wait, nil},
		{"then it is", healthyReplica, func(s *scenario) {
			broken(s)
			s.f.RetryDue = true
		}, role.StartReplica, nil},
	})
}

func TestWhoHoldsMoreThanThePrimaryStaysOut(t *testing.T) {
	errant := func(t *testing.T, _ *scenario, d role.Decision) {
		if d.Errant.IsEmpty() {
			t.Error("the errant transactions are not named")
		}
	}
	runCases(t, []ruleCase{
		{"with executed transactions", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Executed = s.set(uuidA + ":1-111")
		}, role.Wait, errant},
		{"with received transactions", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Replication.SourceHost = "c.ns.svc"
			s.f.MySQL.Replication.Received = s.set(uuidA + ":50-111")
		}, role.Wait, errant},
		{"when the operator has found it out", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.i.Diverged = true
			s.f.MySQL.Executed = s.set(uuidA + ":1-111")
		}, role.Wait, errant},
		{"also when it still replicates", healthyReplica, func(s *scenario) { s.i.Diverged = true }, role.StopReplica, nil},
		{"but what the primary itself committed meanwhile is no excess", healthyReplica, func(s *scenario) {
			newPrimary(s)
			s.f.MySQL.Executed = s.set(uuidA + ":1-100,cccccccc-0000-0000-0000-000000000003:1-7")
		}, role.Follow, nil},
	})
}
