package mycnf_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/mycnf"
)

var update = flag.Bool("update", false, "write the golden files anew")

// healthy is a complete input for the given version; changes make it what a test needs.
func healthy(t testing.TB, version string, changes ...func(*mycnf.Input)) mycnf.Input {
	t.Helper()
	server, err := flavor.Detect(version)
	if err != nil {
		t.Fatal(err)
	}
	in := mycnf.Input{
		Server:       server,
		InstanceName: "c1-2",
		ServerID:     2,
		ReportHost:   "c1-2.db.svc",
		Port:         3306,
		DataDir:      "/var/lib/mysql/data",
		BinlogDir:    "/var/lib/mysql/binlog",
		SocketPath:   "/run/cnmsql/mysql.sock",
		PidFile:      "/run/cnmsql/mysqld.pid",
		TmpDir:       "/tmp",
		SemiSync:     mycnf.SemiSync{TimeoutMillis: 3600000, WaitForReplicaCount: 1},
		TLS:          mycnf.TLS{CA: "/etc/cnmsql/server-tls/ca.crt", Cert: "/etc/cnmsql/server-tls/tls.crt", Key: "/etc/cnmsql/server-tls/tls.key"},
	}
	for _, change := range changes {
		change(&in)
	}
	return in
}

func semiSync(in *mycnf.Input) {
	in.SemiSync.Enabled = true
}

func render(t testing.TB, in mycnf.Input) string {
	t.Helper()
	text, err := mycnf.Render(in)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// everything uses each part of the file.
func everything(in *mycnf.Input) {
	semiSync(in)
	in.MemoryLimitBytes = 4 << 30
	in.BinlogFormat = "MIXED"
	in.Parameters = map[string]string{
		"max_connections":      "500",
		"sql-mode":             "",
		"init_connect":         `SET @a = "it's # 1; \ 2"`,
		"slave_net_timeout":    "10",
		"loose-audit_log_file": "audit log",
	}
	in.AdditionalFiles = map[string]string{
		"20-client.cnf": "[client]\nport = 3307\n",
		"10-tuning.cnf": "# tuning\ninnodb_io_capacity = 1000 # of the volume\n\n",
	}
}

func TestGoldenFiles(t *testing.T) {
	for name, in := range map[string]mycnf.Input{
		"8.0.26":            healthy(t, "8.0.26"),
		"8.0.42-semisync":   healthy(t, "8.0.42", semiSync),
		"8.4.3":             healthy(t, "8.4.3-3"),
		"9.7.4":             healthy(t, "9.7.4"),
		"9.7.4-everything":  healthy(t, "9.7.4", everything),
		"8.4.3-provisional": healthy(t, "8.4.3", func(in *mycnf.Input) { in.TLS = mycnf.TLS{}; in.ErrorLog = "/var/lib/mysql/error.log" }),
	} {
		t.Run(name, func(t *testing.T) {
			got := render(t, in)
			file := filepath.Join("testdata", name+".cnf")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(golden), got); diff != "" {
				t.Errorf("differs from %s (-golden +got):\n%s", file, diff)
			}
			if again := render(t, in); again != got {
				t.Error("the same input gives two texts")
			}
		})
	}
}

func TestAServerStartsWithoutARole(t *testing.T) {
	for _, version := range []string{"8.0.26", "8.4.3", "9.7.4"} {
		for name, changes := range map[string][]func(*mycnf.Input){"plain": nil, "semi-sync": {semiSync}, "everything": {everything}} {
			in := healthy(t, version, changes...)
			options := read(t, render(t, in))
			for key, value := range map[string]string{
				"super_read_only": "ON", "read_only": "ON", "skip_replica_start": "ON", "persisted_globals_load": "OFF", "relay_log_recovery": "OFF",
				"gtid_mode": "ON", "enforce_gtid_consistency": "ON", "log_replica_updates": "ON",
				// Also without semi-sync: it can be switched on later.
				"rpl_semi_sync_source_enabled": "OFF", "rpl_semi_sync_replica_enabled": "OFF", "rpl_semi_sync_source_wait_no_replica": "ON",
				"rpl_semi_sync_source_wait_point": "AFTER_SYNC", "rpl_semi_sync_source_timeout": "3600000", "rpl_semi_sync_source_wait_for_replica_count": "1",
			} {
				if options[key] != value {
					t.Errorf("%s %s: %s = %q, want %q", version, name, key, options[key], value)
				}
			}
			for _, key := range []string{"sync_binlog", "innodb_flush_log_at_trx_commit", "sync_relay_log"} {
				if set := options[key] == "1"; set != in.SemiSync.Enabled {
					t.Errorf("%s %s: %s = %q", version, name, key, options[key])
				}
			}
			text := render(t, in)
			for _, plugin := range []string{in.Server.SemiSync.SourcePlugin, in.Server.SemiSync.ReplicaPlugin, in.Server.ClonePlugin} {
				if !strings.Contains(text, "\nplugin_load_add = "+plugin+"\n") {
					t.Errorf("%s %s: %s is not loaded", version, name, plugin)
				}
			}
		}
	}
}

func TestNoManagedOptionIsLoose(t *testing.T) {
	if text := render(t, healthy(t, "9.7.4", semiSync)); strings.Contains(text, "loose") {
		t.Errorf("an option may be missing unseen:\n%s", text)
	}
}

func TestDefaultsGiveWayToTheUser(t *testing.T) {
	for _, c := range []struct{ key, value, without string }{
		{"innodb-buffer-pool-size", "1G", "innodb_buffer_pool_instances"},
		{"innodb_dedicated_server", "ON", "innodb_buffer_pool_size"},
		{"slave_net_timeout", "30", "replica_net_timeout"},
		{"loose_binlog_expire_logs_seconds", "3600", "\nbinlog_expire_logs_seconds"},
		{"disable-name-resolve", "OFF", "skip_name_resolve"},
		{"sync_relay_log", "1000", "sync_relay_log = 1\n"},
	} {
		text := render(t, healthy(t, "8.4.3", semiSync, func(in *mycnf.Input) { in.Parameters = map[string]string{c.key: c.value} }))
		if strings.Contains(text, c.without) || !strings.Contains(text, c.key+" = "+c.value+"\n") {
			t.Errorf("with %s = %s:\n%s", c.key, c.value, text)
		}
	}
}

func TestTheBufferPoolFollowsTheMemoryLimit(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, c := range []struct {
		limit           uint64
		size, instances string
	}{
		{0, "134217728", "1"},
		{1, "67108864", "1"},
		{512 * mib, "67108864", "1"},
		{700 * mib, "98566144", "1"},   // 94 MiB
		{1 * gib, "268435456", "1"},    // 256 MiB
		{4 * gib, "1879048192", "1"},   // 1.75 GiB
		{8 * gib, "4026531840", "3"},   // 3.75 GiB
		{64 * gib, "33285996544", "8"}, // 31 GiB
	} {
		options := read(t, render(t, healthy(t, "8.4.3", func(in *mycnf.Input) { in.MemoryLimitBytes = c.limit })))
		if options["innodb_buffer_pool_size"] != c.size || options["innodb_buffer_pool_instances"] != c.instances {
			t.Errorf("limit %d MiB: %s in %s", c.limit/mib, options["innodb_buffer_pool_size"], options["innodb_buffer_pool_instances"])
		}
	}
}

func TestAnInputThatMakesNoSenseIsRefused(t *testing.T) {
	for says, change := range map[string]func(*mycnf.Input){
		"version":       func(in *mycnf.Input) { in.Server = flavor.Server{} },
		"server id":     func(in *mycnf.Input) { in.ServerID = 0 },
		"port":          func(in *mycnf.Input) { in.Port = 0 },
		"report host":   func(in *mycnf.Input) { in.ReportHost = "" },
		"report host ":  func(in *mycnf.Input) { in.ReportHost = "a\nsuper_read_only=OFF" },
		"name":          func(in *mycnf.Input) { in.InstanceName = "a\nsuper_read_only=OFF" },
		"data dir":      func(in *mycnf.Input) { in.DataDir = "data" },
		"binary log":    func(in *mycnf.Input) { in.BinlogDir = "" },
		"socket":        func(in *mycnf.Input) { in.SocketPath = "/a\n[client]" },
		"pid":           func(in *mycnf.Input) { in.PidFile = "" },
		"temporary":     func(in *mycnf.Input) { in.TmpDir = "" },
		"error log":     func(in *mycnf.Input) { in.ErrorLog = "x" },
		"TLS":           func(in *mycnf.Input) { in.TLS.Key = "" },
		"timeout":       func(in *mycnf.Input) { in.SemiSync.TimeoutMillis = 0 },
		"replicas":      func(in *mycnf.Input) { in.SemiSync.WaitForReplicaCount = 0 },
		"format":        func(in *mycnf.Input) { in.BinlogFormat = "row" },
		"relay-log":     func(in *mycnf.Input) { in.Parameters = map[string]string{"relay-log-recovery": "ON"} },
		"x.cnf:1":       func(in *mycnf.Input) { in.AdditionalFiles = map[string]string{"x.cnf": "super_read_only=0"} },
		"file name":     func(in *mycnf.Input) { in.AdditionalFiles = map[string]string{"x\nport=1": ""} },
		"sync_binlog":   func(in *mycnf.Input) { semiSync(in); in.Parameters = map[string]string{"sync_binlog": "0"} },
		"does not have": func(in *mycnf.Input) { in.Parameters = map[string]string{"expire_logs_days": "7"} },
	} {
		text, err := mycnf.Render(healthy(t, "8.4.3", change))
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(says)) || text != "" {
			t.Errorf("%s: %v", says, err)
		}
	}
}
