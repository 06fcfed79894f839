package role_test

import (
	"testing"

	"cnmsql.co/operator/instance/role"
)

func TestNobodyWritesWhoMayNot(t *testing.T) {
	runCases(t, []ruleCase{
		{"a healthy primary is left alone", healthyPrimary, nil, role.Rest, nil},
		{"a writable server that does not know the Cluster is demoted", healthyPrimary, func(s *scenario) { s.i = role.Intent{} }, role.Demote, nil},
		{"a writable server that does not know the Lease is demoted", healthyPrimary, func(s *scenario) { s.f.Lease = role.LeaseFacts{} }, role.Demote, nil},
		{"a read-only server that knows nothing waits", healthyReplica, func(s *scenario) { s.i = role.Intent{} }, role.Wait, nil},
		{"a writable server is demoted when another is the primary", healthyPrimary, func(s *scenario) { s.i.CurrentPrimary = "a" }, role.Demote, nil},
		{"a writable server is demoted when nobody is the primary", healthyPrimary, func(s *scenario) { s.i.CurrentPrimary = "" }, role.Demote, nil},
		{"a writable primary without the lease is demoted", healthyPrimary, func(s *scenario) { s.f.Lease.Holder, s.f.Lease.Mine, s.f.Lease.InForce = "c/1", false, false }, role.Demote, nil},
		{"a writable primary whose lease is not in force is demoted", healthyPrimary, func(s *scenario) { s.f.Lease.InForce = false }, role.Demote, nil},
		{"a writable primary is demoted when its Pod stops and its time is over", healthyPrimary, func(s *scenario) { s.f.ShuttingDown, s.f.StepDownDue = true, true }, role.Demote, nil},
		{"a writable primary goes on while its Pod stops and the operator has time", healthyPrimary, func(s *scenario) { s.f.ShuttingDown = true }, role.Rest, nil},
		{"a replica that is writable for root only is demoted", healthyReplica, func(s *scenario) { s.f.MySQL.SuperReadOnly = false }, role.Demote, nil},
		{"a target that is writable for root only is demoted first", promotable, func(s *scenario) { s.f.MySQL.SuperReadOnly = false }, role.Demote, nil},
		{"a primary that is writable for root only is demoted before it is opened", promoted, func(s *scenario) { s.f.MySQL.SuperReadOnly = false }, role.Demote, nil},
	})
}

func TestTheLeaseIsGivenBackByThoseWhoDoNotNeedIt(t *testing.T) {
	holding := func(s *scenario) { s.f.Lease = role.LeaseFacts{Known: true, Holder: "b/1", Mine: true, InForce: true} }
	runCases(t, []ruleCase{
		{"by a replica that is not to be primary", healthyReplica, holding, role.ReleaseLease, func(t *testing.T, _ *scenario, d role.Decision) {
			if d.Step.Executed != nil {
				t.Error("a replica has recorded a handoff")
			}
		}},
		{"by a primary whose server has ended", healthyPrimary, func(s *scenario) { s.f.ServerGone, s.f.ServerRunning, s.f.MySQL = true, false, nil }, role.ReleaseLease, func(t *testing.T, _ *scenario, d role.Decision) {
			if d.Step.Executed != nil {
				t.Error("a handoff without a server to read it from")
			}
		}},
		{"not while a server hangs", healthyPrimary, func(s *scenario) { s.f.ServerRunning, s.f.MySQL = false, nil }, role.Wait, nil},
		{"not by a replica that may be writable for root", healthyReplica, func(s *scenario) {
			holding(s)
			s.f.MySQL.SuperReadOnly = false
		}, role.Demote, nil},
		{"with the executed set by a primary whose Pod stops", healthyPrimary, func(s *scenario) {
			s.f.ShuttingDown, s.f.StepDownDue = true, true
			s.f.MySQL.ReadOnly, s.f.MySQL.SuperReadOnly = true, true
		}, role.ReleaseLease, func(t *testing.T, s *scenario, d role.Decision) {
			if d.Step.Executed == nil || !d.Step.Executed.Equal(s.f.MySQL.Executed) {
				t.Errorf("executed %v", d.Step.Executed)
			}
		}},
		{"for the switchover under way by a primary whose Pod stops", steppingDown, func(s *scenario) {
			s.f.ShuttingDown, s.f.StepDownDue = true, true
			s.f.MySQL.ReadOnly, s.f.MySQL.SuperReadOnly = true, true
		}, role.ReleaseLease, func(t *testing.T, _ *scenario, d role.Decision) {
			if d.Step.Attempt != "x2" || d.Step.Executed == nil {
				t.Errorf("the target gets no handoff: %+v", d.Step)
			}
		}},
	})
}

func TestThePrimaryStepsDownInOrder(t *testing.T) {
	readOnly := func(s *scenario) { s.f.MySQL.ReadOnly, s.f.MySQL.SuperReadOnly = true, true }
	runCases(t, []ruleCase{
		{"read-only first", steppingDown, nil, role.Demote, nil},
		{"then the handoff", steppingDown, readOnly, role.ReleaseLease, func(t *testing.T, s *scenario, d role.Decision) {
			if d.Step.Attempt != "x2" || d.Step.Executed == nil || !d.Step.Executed.Equal(s.f.MySQL.Executed) {
				t.Errorf("handoff %+v", d.Step)
			}
		}},
		{"then it waits for the new primary", steppingDown, func(s *scenario) {
			readOnly(s)
			s.f.Lease = role.LeaseFacts{Known: true, Holder: "c/1"}
		}, role.Wait, nil},
		{"a transition of an earlier generation is over", steppingDown, func(s *scenario) { s.i.Transition.Generation = 4 }, role.Rest, nil},
		{"a transition of a later generation than the next is not understood", steppingDown, func(s *scenario) { s.i.Transition.Generation = 6 }, role.Rest, nil},
	})
}

func TestBystandersKeepWhatTheyHaveWhileThePrimaryChanges(t *testing.T) {
	pending := func(s *scenario) {
		s.i.Transition = &role.Transition{Attempt: "x1", Kind: role.Failover, From: "a", To: "c", Generation: 4}
	}
	runCases(t, []ruleCase{
		{"a replica waits", healthyReplica, pending, role.Wait, nil},
		{"what was received is applied", healthyReplica, func(s *scenario) {
			pending(s)
			s.f.MySQL.Replication.SQLRunning = false
			s.f.MySQL.Replication.Received = s.set(uuidA + ":50-120")
		}, role.StartApplier, nil},
		{"an applier with an error is not started over and over", healthyReplica, func(s *scenario) {
			pending(s)
			s.f.MySQL.Replication.SQLRunning = false
			s.f.MySQL.Replication.SQLErrno = 1062
			s.f.MySQL.Replication.Received = s.set(uuidA + ":50-120")
		}, role.Wait, nil},
		{"without a primary it waits", healthyReplica, func(s *scenario) { s.i.CurrentPrimary, s.i.Generation = "", 0 }, role.Wait, nil},
	})
}
