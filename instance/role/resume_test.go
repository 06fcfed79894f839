package role_test

import (
	"testing"
	"time"

	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

func resumeRefused(t *testing.T, _ *scenario, d role.Decision) {
	t.Helper()
	if d.ResumeRefused == "" {
		t.Errorf("the refusal is not said: %+v", d)
	}
}

func TestAPrimaryThatSomebodyElseClosedIsOpenedWithCare(t *testing.T) {
	closed := func(change func(*scenario)) func(*scenario) {
		return func(s *scenario) {
			s.f.Closed = &role.Closed{}
			s.f.Peers = &role.Peers{SinceLease: true, Answers: []role.Peer{
				{Instance: "a", ServerUUID: uuidA, ReadOnly: true, Held: s.f.MySQL.Executed},
				{Instance: "c", ReadOnly: true},
			}}
			if change != nil {
				change(s)
			}
		}
	}
	runCases(t, []ruleCase{
		{"it is recorded first", promoted, closed(nil), role.RecordReassert, nil},
		{"then opened", promoted, closed(func(s *scenario) { s.f.Closed.Recorded = true }), role.OpenWrites, nil},
		{"even while the next one must wait", promoted, closed(func(s *scenario) { s.f.Closed.Recorded, s.f.Closed.Wait = true, time.Minute }), role.OpenWrites, nil},
		{"not when the last one was a moment ago", promoted, closed(func(s *scenario) { s.f.Closed.Wait = time.Minute }), role.Wait, nil},
		{"not when another is silent", promoted, closed(func(s *scenario) { s.f.Peers.Silent = []string{"c"} }), role.Wait, nil},
		{"not when another takes writes", promoted, closed(func(s *scenario) { s.f.Peers.Answers[1].ReadOnly = false }), role.Wait, nil},
		{"not when another holds more", promoted, closed(func(s *scenario) { s.f.Peers.Answers[1].Held = s.set(uuidA + ":1-999") }), role.Wait, nil},
		{"not without having asked", promoted, closed(func(s *scenario) { s.f.Peers = nil }), role.AskPeers, nil},
		{"a boot is no such thing", promoted, closed(func(s *scenario) { s.f.Closed, s.f.Peers.Silent = nil, []string{"c"} }), role.OpenWrites, nil},
	})
}

func TestAServerWithoutAWatchdogIsNotWritable(t *testing.T) {
	unwatched := func(s *scenario) { s.f.Lease.Unwatched = true }
	runCases(t, []ruleCase{
		{"a writable one is closed", healthyPrimary, unwatched, role.Demote, nil},
		{"it gives the role up rather than open", promoted, unwatched, role.ReleaseLease, resumeRefused},
		{"a target does not take it", promotable, unwatched, role.ReleaseLease, nil},
		{"a replica goes on", healthyReplica, unwatched, role.Rest, nil},
	})
}

func TestWhoHasVouchedWaitsForTheEndOfItsPromise(t *testing.T) {
	promised := func(s *scenario) {
		s.f.Lease = role.LeaseFacts{Known: true, Holder: "a/1", Expired: true, PromisedTo: "a/1"}
	}
	runCases(t, []ruleCase{
		{"as the target of a failover", promotable, promised, role.Wait, nil},
		{"as the primary that resumes", promoted, promised, role.Wait, nil},
	})
}

func TestThePrimaryOpensInOrder(t *testing.T) {
	runCases(t, []ruleCase{
		{"without the lease it is taken", promoted, func(s *scenario) { s.f.Lease = role.LeaseFacts{Known: true} }, role.AcquireLease, nil},
		{"with another's lease it waits", promoted, func(s *scenario) { s.f.Lease = role.LeaseFacts{Known: true, Holder: "c/1"} }, role.Wait, nil},
		{"the same Pod's lease of before a restart is renewed", promoted, func(s *scenario) { s.f.Lease.InForce = false }, role.AcquireLease, nil},
		{"the lease of its predecessor is not its own", promoted, func(s *scenario) {
			s.f.Lease = role.LeaseFacts{Known: true, Holder: "b/0"}
		}, role.Wait, nil},
		{"then the others are asked", promoted, func(s *scenario) { s.f.Peers = nil }, role.AskPeers, nil},
		{"again when they were asked before the lease was taken", promoted, func(s *scenario) { s.f.Peers.SinceLease = false }, role.AskPeers, nil},
		{"then replication ends", promoted, func(s *scenario) {
			s.f.MySQL.Replication = &protocol.Replication{SourceHost: "a.ns.svc", IORunning: true, Received: s.set(uuidA + ":50-100")}
		}, role.StopReceiver, nil},
		{"its files are left for later", promoted, func(s *scenario) {
			s.f.MySQL.Replication = &protocol.Replication{SourceHost: "a.ns.svc", Received: s.set(uuidA + ":50-100")}
		}, role.OpenWrites, nil},
		{"what a person replicates from elsewhere is left alone", healthyPrimary, func(s *scenario) {
			s.f.MySQL.Replication = &protocol.Replication{SourceHost: "legacy-db.example.com"}
		}, role.Rest, nil},
		{"until the primary is open", healthyPrimary, func(s *scenario) {
			s.f.MySQL.Replication = &protocol.Replication{SourceHost: "b1.ns.svc", Received: s.set(uuidA + ":50-100")}
		}, role.ResetReplica, nil},
		{"then semi-sync is switched on", promoted, func(s *scenario) {
			semiSync(s)
			s.f.MySQL.SemiSync.SourceEnabled = false
		}, role.SourceSemiSync, nil},
		{"with the right count", promoted, func(s *scenario) {
			semiSync(s)
			s.f.MySQL.SemiSync.WaitFor = 1
		}, role.SourceSemiSync, nil},
		{"and not as a replica", promoted, func(s *scenario) {
			semiSync(s)
			s.f.MySQL.SemiSync.ReplicaEnabled = true
		}, role.SourceSemiSync, nil},
		{"and off when it is not configured any more", promoted, func(s *scenario) { s.f.MySQL.SemiSync.SourceEnabled = true }, role.SourceSemiSync, nil},
		{"then the API server is asked once more", promoted, func(s *scenario) { s.i.Live = false }, role.Confirm, nil},
		{"then it opens", promoted, nil, role.OpenWrites, nil},
		{"and lets clients in", healthyPrimary, func(s *scenario) { s.f.MySQL.Offline = true }, role.AdmitClients, nil},
		{"commits that nobody can acknowledge wait", healthyPrimary, nobodyAcknowledges, role.Rest, nil},
		{"until the operator asks to let them go", healthyPrimary, func(s *scenario) {
			nobodyAcknowledges(s)
			s.f.LetGo = true
		}, role.Demote, nil},
		{"which is nothing to do when none waits", healthyPrimary, func(s *scenario) {
			nobodyAcknowledges(s)
			s.f.LetGo, s.f.MySQL.SemiSync.Waiting = true, 0
		}, role.Rest, nil},
		{"also with semi-sync", promoted, semiSync, role.OpenWrites, nil},
		{"not when its Pod is being stopped", promoted, func(s *scenario) { s.f.ShuttingDown = true }, role.Wait, nil},
		{"an open primary switches semi-sync on when it is configured", healthyPrimary, func(s *scenario) { s.f.SemiSync = true }, role.SourceSemiSync, nil},
		{"an open primary switches semi-sync off when it is not", healthyPrimary, func(s *scenario) { s.f.MySQL.SemiSync.SourceEnabled = true }, role.SourceSemiSync, nil},
	})
}

func TestAPrimaryThatLostSomethingDoesNotOpen(t *testing.T) {
	runCases(t, []ruleCase{
		{"of what it had when it was promoted", promoted, func(s *scenario) { s.f.MySQL.Executed = s.set(uuidA + ":1-99") }, role.ReleaseLease, resumeRefused},
		{"of its own transactions, which a replica has", promoted, func(s *scenario) {
			s.f.MySQL.Executed = s.set(uuidA + ":1-100," + uuidB + ":1-5")
			s.f.Peers.Answers[0].Held = s.set(uuidA + ":1-100," + uuidB + ":1-6")
		}, role.ReleaseLease, resumeRefused},
		{"when the recorded set cannot be read", promoted, func(s *scenario) { s.i.PromotionExecuted, s.i.PromotionUnreadable = nil, true }, role.ReleaseLease, resumeRefused},
		{"when no set is recorded", promoted, func(s *scenario) { s.i.PromotionExecuted = nil }, role.ReleaseLease, resumeRefused},
		{"when it has diverged", promoted, func(s *scenario) { s.i.Diverged = true }, role.ReleaseLease, resumeRefused},
		{"when it was refused a moment ago", promoted, func(s *scenario) { s.f.Refusal = &role.Refusal{Generation: 4, Why: "it lost something"} }, role.ReleaseLease, resumeRefused},
		{"when its relay log is not applied", promoted, func(s *scenario) {
			s.f.MySQL.Replication = &protocol.Replication{SourceHost: "a.ns.svc", Received: s.set(uuidA + ":50-101")}
		}, role.ReleaseLease, resumeRefused},
		{"and takes no lease for it", promoted, func(s *scenario) {
			s.i.Diverged = true
			s.f.Lease = role.LeaseFacts{Known: true}
		}, role.Wait, resumeRefused},
		{"but the first generation needs no recorded set", promoted, func(s *scenario) {
			s.i.PromotionExecuted, s.i.Generation, s.i.Transition = nil, 1, nil
		}, role.OpenWrites, nil},
		{"but a refusal in an earlier generation is over", promoted, func(s *scenario) { s.f.Refusal = &role.Refusal{Generation: 3, Why: "it lost something"} }, role.OpenWrites, nil},
		{"but others may hold what somebody else committed", promoted, func(s *scenario) {
			s.f.Peers.Answers[0].Held = s.set("cccccccc-0000-0000-0000-000000000003:1-9")
		}, role.OpenWrites, nil},
	})
}

// semiSync is a source side that waits for two.
func semiSync(s *scenario) {
	s.f.SemiSync = true
	s.i.AckCount = 2
	s.f.MySQL.SemiSync = protocol.SemiSync{SourceEnabled: true, WaitFor: 2}
}

// nobodyAcknowledges has three commits wait for replicas that are not there.
func nobodyAcknowledges(s *scenario) {
	semiSync(s)
	s.f.MySQL.SemiSync.SourceActive, s.f.MySQL.SemiSync.Clients, s.f.MySQL.SemiSync.Waiting = true, 0, 3
}
