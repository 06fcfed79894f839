package flavor_test

import (
	"strings"
	"testing"

	"cnmsql.co/operator/instance/flavor"
)

func server(t testing.TB, text string) flavor.Server {
	t.Helper()
	s, err := flavor.Detect(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCapabilitiesFollowTheVersion(t *testing.T) {
	type facts struct {
		order, tags, native bool
		status, reset       string
	}
	const oldStatus, oldReset = "SHOW MASTER STATUS", "RESET MASTER"
	const newStatus, newReset = "SHOW BINARY LOG STATUS", "RESET BINARY LOGS AND GTIDS"
	for _, c := range []struct {
		version string
		want    facts
	}{
		{"8.0.26", facts{false, false, true, oldStatus, oldReset}},
		{"8.0.27", facts{true, false, true, oldStatus, oldReset}},
		{"8.0.42", facts{true, false, true, oldStatus, oldReset}},
		{"8.1.0", facts{true, false, true, oldStatus, oldReset}},
		{"8.2.0", facts{true, false, true, newStatus, newReset}},
		{"8.3.0", facts{true, true, true, newStatus, newReset}},
		{"8.4.0", facts{true, true, false, newStatus, newReset}},
		{"9.7.4", facts{true, true, false, newStatus, newReset}},
	} {
		s := server(t, c.version)
		got := facts{s.CommitOrderPreserved, s.TaggedGTIDs, s.NativePassword, s.ShowBinaryLogStatus, s.ResetBinaryLogs}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", c.version, got, c.want)
		}
		if s.SemiSync.SourcePlugin != "semisync_source.so" || s.SemiSync.ReplicaPlugin != "semisync_replica.so" {
			t.Errorf("%s: semi-sync plugins %+v", c.version, s.SemiSync)
		}
		if s.ClonePlugin != "mysql_clone.so" {
			t.Errorf("%s: clone plugin %q", c.version, s.ClonePlugin)
		}
	}
}

func TestTheNewestOfASeriesHasItsCapabilities(t *testing.T) {
	s, err := flavor.ForImage("mysql:8.0")
	if err != nil {
		t.Fatal(err)
	}
	if !s.CommitOrderPreserved || s.ShowBinaryLogStatus != "SHOW MASTER STATUS" {
		t.Errorf("%+v", s)
	}
}

func TestRemovedVariablesAreKnownByVersion(t *testing.T) {
	for _, c := range []struct {
		variable, present, absent, use string
	}{
		{"expire_logs_days", "8.0.42", "8.4.0", "binlog_expire_logs_seconds"},
		{"default_authentication_plugin", "8.0.42", "8.4.0", "authentication_policy"},
		{"master_info_repository", "8.0.42", "8.4.0", "remove"},
		{"skip_host_cache", "8.0.42", "8.4.0", "host_cache_size"},
		{"mysql_native_password", "8.4.5", "9.0.0", "caching_sha2_password"},
		{"innodb_log_file_size", "8.4.5", "9.7.4", "innodb_redo_log_capacity"},
	} {
		if r, lacks := server(t, c.present).Lacks(c.variable); lacks {
			t.Errorf("%s lacks %s: %+v", c.present, c.variable, r)
		}
		if r, lacks := server(t, c.absent).Lacks(c.variable); !lacks || !strings.Contains(r.Use, c.use) {
			t.Errorf("%s has %s, or says only %q", c.absent, c.variable, r.Use)
		}
	}
	if _, lacks := server(t, "8.0.26").Lacks("query_cache_size"); !lacks {
		t.Error("8.0.26 has a query cache")
	}
	if _, lacks := server(t, "9.7.4").Lacks("max_connections"); lacks {
		t.Error("9.7.4 lacks max_connections")
	}
}
