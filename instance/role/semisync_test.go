package role_test

import (
	"strings"
	"testing"

	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// says checks that a decision names a plugin and what to do.
func says(plugin string) func(*testing.T, *scenario, role.Decision) {
	return func(t *testing.T, _ *scenario, d role.Decision) {
		t.Helper()
		if !strings.Contains(d.Why, plugin+" is not loaded") || !strings.Contains(d.Why, "delete its Pod") {
			t.Errorf("said %q", d.Why)
		}
	}
}

// A Cluster of one, without semi-sync, becomes one of three with it: its first server goes on running.
func TestSemiSyncIsSwitchedOnInServersThatRun(t *testing.T) {
	on := func(s *scenario) { s.f.SemiSync = true }
	runCases(t, []ruleCase{
		{"the primary waits for acknowledgements from now on", healthyPrimary, on, role.SourceSemiSync, nil},
		{"its replicas give them", healthyReplica, on, role.Acknowledge, nil},
		{"after a failover the first server acknowledges what the winner sends", healthyReplica, func(s *scenario) {
			on(s)
			newPrimary(s)
			s.f.MySQL.Replication = nil
		}, role.Acknowledge, nil},
		{"and the winner waits for it before it opens", promoted, on, role.SourceSemiSync, nil},
	})
}

func TestAPluginThatIsNotLoadedIsSaidAndNotWaitedFor(t *testing.T) {
	without := func(s *scenario) {
		s.f.SemiSync = true
		s.f.MySQL.SemiSync = protocol.SemiSync{SourceMissing: true, ReplicaMissing: true}
	}
	runCases(t, []ruleCase{
		{"a replica goes on", healthyReplica, without, role.Rest, says("semisync_replica")},
		{"lets clients in", healthyReplica, func(s *scenario) {
			without(s)
			s.f.MySQL.Offline = true
		}, role.AdmitClients, nil},
		{"and follows the next primary", healthyReplica, func(s *scenario) {
			without(s)
			newPrimary(s)
			s.f.MySQL.Replication = nil
		}, role.Follow, nil},
		{"a former primary too, once it has switched its source side off", healthyReplica, func(s *scenario) {
			s.f.SemiSync = true
			s.f.MySQL.SemiSync = protocol.SemiSync{SourceEnabled: true, ReplicaMissing: true}
		}, role.ReplicaSemiSync, nil},
		{"an open primary stays open", healthyPrimary, without, role.Rest, says("semisync_source")},
		{"and lets clients in", healthyPrimary, func(s *scenario) {
			without(s)
			s.f.MySQL.Offline = true
		}, role.AdmitClients, nil},
		{"one that is not open leaves the role to another", promoted, without, role.ReleaseLease, func(t *testing.T, s *scenario, d role.Decision) {
			resumeRefused(t, s, d)
			says("semisync_source")(t, s, d)
		}},
		{"and so does the target of a failover", promotable, without, role.ReleaseLease, func(t *testing.T, s *scenario, d role.Decision) {
			refused(t, s, d)
			says("semisync_source")(t, s, d)
		}},
		{"which is nobody's concern without semi-sync", promotable, func(s *scenario) {
			without(s)
			s.f.SemiSync = false
		}, role.Claim, nil},
	})
}
