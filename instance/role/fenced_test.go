package role_test

import (
	"testing"

	"cnmsql.co/operator/instance/role"
)

// fencedPrimary is a writable primary that a person fences, fencedReplica a replica.
func fencedPrimary(t testing.TB) *scenario { return fence(healthyPrimary(t)) }
func fencedReplica(t testing.TB) *scenario { return fence(healthyReplica(t)) }

func fence(s *scenario) *scenario {
	s.i.Fenced = true
	return s
}

// gaveBack is a fenced primary that has become read-only and holds the lease no more.
func gaveBack(t testing.TB) *scenario {
	s := fencedPrimary(t)
	s.f.MySQL.ReadOnly, s.f.MySQL.SuperReadOnly = true, true
	s.f.Lease = role.LeaseFacts{Known: true}
	return s
}

func TestAFencedPrimaryGivesEverythingBackAndThenStopsItsServer(t *testing.T) {
	runCases(t, []ruleCase{
		{"nobody writes", fencedPrimary, nil, role.Demote, nil},
		{"then the lease goes, with what it has executed", fencedPrimary, func(s *scenario) { s.f.MySQL.ReadOnly, s.f.MySQL.SuperReadOnly = true, true }, role.ReleaseLease, func(t *testing.T, s *scenario, d role.Decision) {
			if d.Step.Executed == nil || !d.Step.Executed.Equal(s.f.MySQL.Executed) || d.Step.Attempt != "" {
				t.Errorf("handoff %+v", d.Step)
			}
		}},
		{"with the attempt of a switchover under way, which goes on", steppingDown, func(s *scenario) {
			fence(s)
			s.f.MySQL.ReadOnly, s.f.MySQL.SuperReadOnly = true, true
		}, role.ReleaseLease, func(t *testing.T, _ *scenario, d role.Decision) {
			if d.Step.Attempt != "x2" {
				t.Errorf("handoff for %q", d.Step.Attempt)
			}
		}},
		{"then it looks for a replica that holds everything", gaveBack, func(s *scenario) { s.f.Peers = nil }, role.AskPeers, nil},
		{"and waits for one", gaveBack, func(s *scenario) {
			s.f.Peers = &role.Peers{Answers: []role.Peer{{Instance: "a", Held: s.set(uuidA + ":1-2")}}, Silent: []string{"c"}}
		}, role.Wait, nil},
		{"and waits while nobody answers", gaveBack, func(s *scenario) { s.f.Peers = &role.Peers{Silent: []string{"a", "c"}} }, role.Wait, nil},
		{"but not for ever", gaveBack, func(s *scenario) {
			s.f.HandoverOverdue, s.f.Peers = true, &role.Peers{Silent: []string{"a", "c"}}
		}, role.StopServer, nil},
		{"it stops when one has it all", gaveBack, func(s *scenario) {
			s.f.Peers = &role.Peers{Answers: []role.Peer{{Instance: "a", Held: s.f.MySQL.Executed}}, Silent: []string{"c"}}
		}, role.StopServer, nil},
		{"it waits for nobody when it is the only one", gaveBack, func(s *scenario) { s.f.Peers = &role.Peers{} }, role.StopServer, nil},
	})
}

func TestAFencedInstanceKeepsItsServerStopped(t *testing.T) {
	gone := func(s *scenario) { s.f.ServerRunning, s.f.ServerGone, s.f.MySQL = false, true, nil }
	runCases(t, []ruleCase{
		{"a replica stops at once", fencedReplica, nil, role.StopServer, nil},
		{"a replica that is writable for root is demoted first", fencedReplica, func(s *scenario) { s.f.MySQL.SuperReadOnly = false }, role.Demote, nil},
		{"a server that starts is stopped", fencedReplica, func(s *scenario) { s.f.ServerRunning, s.f.ServerStarting, s.f.MySQL = false, true, nil }, role.StopServer, nil},
		{"one that is down is not started again", fencedReplica, gone, role.StopServer, nil},
		{"it rests once that is so", fencedReplica, func(s *scenario) { gone(s); s.f.ServerHeld = true }, role.Rest, nil},
		{"it waits while the server ends", fencedReplica, func(s *scenario) { s.f.ServerHeld = true }, role.Wait, nil},
		{"it waits for the answer of a server that may be writable", fencedPrimary, func(s *scenario) { s.f.ServerRunning, s.f.MySQL = false, nil }, role.Wait, nil},
		{"one that hangs is killed, and never asked to end: it would answer its clients", fencedPrimary, func(s *scenario) {
			s.f.ServerRunning, s.f.ServerStuck, s.f.MySQL = false, true, nil
		}, role.KillServer, nil},
		{"one that does not become read-only is killed, too", fencedPrimary, func(s *scenario) { s.f.ServerStuck = true }, role.KillServer, nil},
		{"a lease without a server goes", fencedPrimary, func(s *scenario) { gone(s); s.f.ServerHeld = true }, role.ReleaseLease, nil},
		{"the server starts when the fence ends", healthyReplica, func(s *scenario) { gone(s); s.f.ServerHeld = true }, role.StartServer, nil},
		{"not while the annotation names it: the status may have been lost, or the instance be about to be removed", healthyReplica, func(s *scenario) { gone(s); s.f.ServerHeld, s.i.FenceAsked = true, true }, role.Wait, nil},
		{"not in a Pod that is being stopped", healthyReplica, func(s *scenario) { gone(s); s.f.ServerHeld, s.f.ShuttingDown = true, true }, role.Wait, nil},
	})
}

func TestAFencedInstanceTakesNoRole(t *testing.T) {
	runCases(t, []ruleCase{
		{"the target of a transition gives the lease back", promotable, func(s *scenario) { fence(s) }, role.ReleaseLease, nil},
		{"a primary that was to resume does not open", promoted, func(s *scenario) { fence(s) }, role.ReleaseLease, nil},
	})
	s := promotable(t)
	now := s.i
	now.Fenced = true
	if why := role.Claimable("b", s.i, now, role.Decision{Step: role.Step{Kind: role.Claim, Attempt: s.i.Transition.Attempt}}, 10e9); why != "this instance is fenced" {
		t.Errorf("a claim of one that has just been fenced: %q", why)
	}
}
