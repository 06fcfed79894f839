package flavor_test

import (
	"strings"
	"testing"

	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/internal/mysqltest"
)

func TestARealServerUnderstandsTheStatementsAndKeepsItsHistory(t *testing.T) {
	s := mysqltest.Start(t, "flavor", mysqltest.Options{})
	is, err := flavor.Detect(s.Query(t, "SELECT VERSION()"))
	if err != nil {
		t.Fatal(err)
	}
	const history = "SELECT @@GLOBAL.gtid_executed"
	s.Exec(t, flavor.OpenForWrites, "CREATE DATABASE history", flavor.CloseForWrites)
	before := s.Query(t, history)
	for _, password := range []string{`a#b`, `a'b`, `a"b`, `a\b`, `\`, `a;b`, `a b`, `%p@/:?`, `é`, strings.Repeat("é", flavor.MaxReplicationPassword/2)} {
		to := source
		to.Password = password
		change, err := is.ChangeSource(to)
		if err != nil {
			t.Fatal(err)
		}
		s.Exec(t, change)
		if got := s.Query(t, "SELECT User_password FROM mysql.slave_master_info"); got != password {
			t.Errorf("password %q has become %q", password, got)
		}
	}
	for _, statement := range []string{
		is.StartReplica(flavor.Receiver), is.StartReplica(flavor.Applier), is.StopReplica(flavor.Receiver), is.StartReplica(flavor.BothThreads),
		flavor.ShowReplicaStatus, flavor.ShowReplicas, is.ShowBinaryLogStatus, is.StopReplica(flavor.Applier), is.StopReplica(flavor.BothThreads),
		is.ResetReplica(false), is.ResetReplica(true), flavor.ReloadTLS, flavor.SetGlobal("max_connections", "99"),
	} {
		s.Exec(t, statement)
	}
	if after := s.Query(t, history); after != before {
		t.Errorf("the executed set was %q and is %q", before, after)
	}
	if got := s.Query(t, "SELECT CONCAT(@@super_read_only, @@read_only)"); got != "11" {
		t.Errorf("read-only after %s: %s", flavor.CloseForWrites, got)
	}
	s.Exec(t, flavor.OpenForWrites)
	if got := s.Query(t, "SELECT CONCAT(@@super_read_only, @@read_only)"); got != "00" {
		t.Errorf("read-only after %s: %s", flavor.OpenForWrites, got)
	}
	s.Exec(t, is.ResetBinaryLogs)
	if got := s.Query(t, history); got != "" {
		t.Errorf("executed after %s: %q", is.ResetBinaryLogs, got)
	}
}

func TestARealServerHasTheNamesOfItsVersion(t *testing.T) {
	s := mysqltest.Start(t, "flavor", mysqltest.Options{})
	is, err := flavor.Detect(s.Query(t, "SELECT VERSION()"))
	if err != nil {
		t.Fatal(err)
	}
	names := is.SemiSync
	for _, name := range []string{names.SourceEnabled, names.SourceTimeout, names.WaitForReplicaCount, names.WaitNoReplica, names.WaitPoint, names.ReplicaEnabled} {
		if got := s.Query(t, "SELECT COUNT(*) FROM performance_schema.global_variables WHERE variable_name = "+flavor.Quote(name)); got != "1" {
			t.Errorf("no variable %s", name)
		}
	}
	for _, name := range []string{names.StatusClients, names.StatusSource, names.StatusReplica, names.StatusYes, names.StatusNo, names.StatusWaiting} {
		if got := s.Query(t, "SELECT COUNT(*) FROM performance_schema.global_status WHERE variable_name = "+flavor.Quote(name)); got != "1" {
			t.Errorf("no status variable %s", name)
		}
	}
	for name := range strings.FieldsSeq(s.Query(t, "SELECT GROUP_CONCAT(variable_name SEPARATOR ' ') FROM performance_schema.global_variables")) {
		if r, lacks := is.Lacks(name); lacks {
			t.Errorf("%s has %s, which should be gone: %+v", is.Version, name, r)
		}
	}
}
