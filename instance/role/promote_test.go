package role_test

import (
	"testing"

	"cnmsql.co/operator/instance/role"
)

func refused(t *testing.T, _ *scenario, d role.Decision) {
	t.Helper()
	if d.PromotionRefused == "" || d.PromotionRefusedAttempt != "x1" {
		t.Errorf("the refusal is not said: %+v", d)
	}
}

func TestThePromotionGoesInOrder(t *testing.T) {
	runCases(t, []ruleCase{
		{"a lease that is free is taken", promotable, func(s *scenario) { s.f.Lease = role.LeaseFacts{Known: true} }, role.AcquireLease, nil},
		{"a lease that has expired is taken", promotable, func(s *scenario) { s.f.Lease = role.LeaseFacts{Known: true, Holder: "a/1", Expired: true} }, role.AcquireLease, nil},
		{"a lease that another holds is waited for", promotable, func(s *scenario) { s.f.Lease = role.LeaseFacts{Known: true, Holder: "a/1"} }, role.Wait, nil},
		{"a lease of before this manager's start is renewed first", promotable, func(s *scenario) { s.f.Lease.InForce = false }, role.AcquireLease, nil},
		{"then the receiver is stopped", promotable, func(s *scenario) { s.f.MySQL.Replication.IORunning = true }, role.StopReceiver, nil},
		{"then everything received is applied", promotable, func(s *scenario) {
			s.f.MySQL.Replication.SQLRunning = true
			s.f.MySQL.Replication.Received = s.set(uuidA + ":50-120")
		}, role.Wait, nil},
		{"by an applier that runs", promotable, func(s *scenario) { s.f.MySQL.Replication.Received = s.set(uuidA + ":50-120") }, role.StartApplier, nil},
		{"then the others are asked", promotable, func(s *scenario) { s.f.Peers = nil }, role.AskPeers, nil},
		{"again when they were asked before the lease was taken", promotable, func(s *scenario) { s.f.Peers.SinceLease = false }, role.AskPeers, nil},
		{"nobody waits for an applier with nothing to apply to stop", promotable, func(s *scenario) { s.f.MySQL.Replication.SQLRunning = true }, role.Claim, nil},
		{"then the role is claimed", promotable, nil, role.Claim, func(t *testing.T, s *scenario, d role.Decision) {
			if d.Step.Attempt != "x1" || d.Step.Executed == nil || !d.Step.Executed.Equal(s.f.MySQL.Executed) {
				t.Errorf("claim %+v", d.Step)
			}
		}},
		{"the first primary claims without anybody to compare with", promotable, func(s *scenario) {
			s.i = role.Intent{Known: true, AckCount: 1, Transition: &role.Transition{Attempt: "x1", Kind: role.Bootstrap, To: "b", Generation: 1}}
			s.f.MySQL.Replication = nil
			s.f.Peers.Answers = nil
		}, role.Claim, nil},
		{"nobody who does not answer is waited for", promotable, func(s *scenario) { s.f.Peers.Answers = nil }, role.Claim, nil},
		{"an instance that has diverged is no measure", promotable, func(s *scenario) {
			s.f.Peers.Answers[0].Held = s.set(uuidA + ":1-99,cccccccc-0000-0000-0000-000000000003:1")
			s.f.Peers.Answers[0].Diverged = true
		}, role.Claim, nil},
	})
}

func TestAPromotionIsRefusedAndTheLeaseGivenBack(t *testing.T) {
	runCases(t, []ruleCase{
		{"when another holds more", promotable, func(s *scenario) { s.f.Peers.Answers[0].Held = s.set(uuidA + ":1-101") }, role.ReleaseLease, refused},
		{"when the Pod is being stopped", promotable, func(s *scenario) { s.f.ShuttingDown = true }, role.ReleaseLease, refused},
		{"when the instance has diverged", promotable, func(s *scenario) { s.i.Diverged = true }, role.ReleaseLease, refused},
		{"when the applier has stopped with an error", promotable, func(s *scenario) { s.f.MySQL.Replication.SQLErrno = 1062 }, role.ReleaseLease, refused},
		{"for as long as it is the same attempt", promotable, func(s *scenario) { s.f.Refusal = &role.Refusal{Attempt: "x1", Why: "c holds more"} }, role.ReleaseLease, refused},
		{"without a lease to give back", promotable, func(s *scenario) {
			s.f.ShuttingDown = true
			s.f.Lease = role.LeaseFacts{Known: true}
		}, role.Wait, refused},
		{"but not for another attempt", promotable, func(s *scenario) { s.f.Refusal = &role.Refusal{Attempt: "x0", Why: "c holds more"} }, role.Claim, nil},
	})
}

func TestASwitchoverWaitsForTheHandoff(t *testing.T) {
	start := func(t testing.TB) *scenario { return promotable(t).switchover() }
	live := func(t testing.TB) *scenario {
		s := start(t)
		s.i.Live = true
		return s
	}
	runCases(t, []ruleCase{
		{"a lease that seems to be free is looked at once more", start, func(s *scenario) { s.f.Lease = role.LeaseFacts{Known: true} }, role.Confirm, nil},
		{"one that is held is enough", start, nil, role.Claim, nil},
		{"while the old primary holds the lease", start, func(s *scenario) {
			s.f.Lease = role.LeaseFacts{Known: true, Holder: "a/1"}
		}, role.Wait, nil},
		{"but not for one that died", live, func(s *scenario) {
			s.f.Lease = role.LeaseFacts{Known: true, Holder: "a/1", Expired: true}
		}, role.Wait, refused},
		{"nor for one that gave up its lease without", live, func(s *scenario) { s.f.Lease = role.LeaseFacts{Known: true} }, role.Wait, refused},
		{"a lease that was taken without is given back", live, func(s *scenario) { s.f.Lease.Handoff = nil }, role.ReleaseLease, refused},
		{"one of another attempt does not count", live, func(s *scenario) { s.f.Lease.HandoffAttempt = "x0" }, role.ReleaseLease, refused},
		{"what is missing is received, by a receiver that runs", start, func(s *scenario) {
			handoff := s.set(uuidA + ":1-110")
			s.f.Lease.Handoff = &handoff
		}, role.StartReplica, nil},
		{"what is missing is waited for", start, func(s *scenario) {
			handoff := s.set(uuidA + ":1-110")
			s.f.Lease.Handoff = &handoff
			s.f.MySQL.Replication.IORunning, s.f.MySQL.Replication.SQLRunning = true, true
		}, role.Wait, nil},
		{"a receiver that broke is started after a pause only", start, func(s *scenario) {
			handoff := s.set(uuidA + ":1-110")
			s.f.Lease.Handoff = &handoff
			s.f.MySQL.Replication.IOErrno = 2003
		}, role.Wait, nil},
		{"a receiver that broke is started after a pause", start, func(s *scenario) {
			handoff := s.set(uuidA + ":1-110")
			s.f.Lease.Handoff = &handoff
			s.f.MySQL.Replication.IOErrno, s.f.RetryDue = 2003, true
		}, role.StartReplica, nil},
		{"what is received is applied before the claim", start, func(s *scenario) {
			handoff := s.set(uuidA + ":1-110")
			s.f.Lease.Handoff = &handoff
			s.f.MySQL.Replication.Received = s.set(uuidA + ":50-110")
		}, role.StartApplier, nil},
	})
}
