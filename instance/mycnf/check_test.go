package mycnf_test

import (
	"strings"
	"testing"

	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/mycnf"
)

func TestManagedOptionsAreRefusedInEverySpelling(t *testing.T) {
	for _, key := range []string{
		"super_read_only", "super-read-only", "super_read-only", "SUPER_READ_ONLY", "Super-Read-Only", "super_read_onl", "super-read", "loose-super-read-only",
		"loose_super_read_only", "skip-super-read-only", "skip_super_read_only", "disable-super_read_only", "enable_super_read_only", "maximum-super-read-only",
		"loose-skip-super-read-only", "skip-loose-super-read-only", "loose-loose-super_read_only", "LOOSE-super_read_only", "plugin-super_read_only",
		"read_only", "read-only", "server_id", "server-id", "loose_server-id", "gtid_mode", "gtid-mod", "enforce-gtid-consistency", "log_bin", "log-bin",
		"skip-log-bin", "disable_log_bin", "log_bin_index", "log_replica_updates", "log_slave_updates", "log-slave-updates", "skip-log-slave-updates",
		"skip_replica_start", "skip-slave-start", "skip_slave_start", "relay_log", "relay-log", "relay_log_recovery", "relay-log-index", "relay_log_info_file",
		"relay_log_purge", "datadir", "socket", "port", "bind_address", "bind-address", "report_host", "report-port", "report_user", "plugin_load",
		"plugin-load-add", "plugin_load_add", "rpl_semi_sync_source_enabled", "rpl-semi-sync-master-enabled", "rpl_semi_sync_slave_enabled", "rpl_semi_sync_source",
		"loose-rpl_semi_sync_source_timeout", "plugin-rpl_semi_sync_source_enabled", "plugin_rpl_semi_sync_replica", "ssl_ca", "ssl-cert", "ssl-key", "ssl_capath", "ssl",
		"skip-ssl", "secure_file_priv", "secure-file-priv", "persisted_globals_load", "persisted-globals-load", "disable-persisted-globals-load", "pid_file", "pid-file",
		"init_file", "init-file", "init_slave", "user", "basedir", "innodb_directories", "mysqlx", "skip-mysqlx", "mysqlx_port", "mysqlx-bind-address", "tmpdir", "log_error",
		"log-error", "skip_networking", "skip-networking", "skip_grant_tables", "skip-grant-tables", "replicate_do_db", "replicate-ignore-table", "binlog_do_db",
		"slave_skip_errors", "slave-exec-mode", "replica_parallel_type", "slave_preserve_commit_order", "binlog_format", "offline_mode", "group_replication_group_name",
		"loose-group_replication_start_on_boot", "innodb_force_recovery", "innodb_read_only", "skip-innodb", "chroot", "initialize", "initialize-insecure",
		"initialize_ins", "help", "defaults_file", "defaults-extra-file", "clone", "plugin_clone", "terminology_use_previous", "performance_schema", "skip-performance-schema", "tc_heuristic_recover",
	} {
		problems := mycnf.Check(map[string]string{key: "1"})
		if len(problems) != 1 {
			t.Errorf("%s: %d problems", key, len(problems))
			continue
		}
		p := problems[0]
		if p.Key != key || p.Reason == "" || p.Remedy == "" || strings.Contains(p.Reason, "such a name") {
			t.Errorf("%s: %+v", key, p)
		}
	}
}

func TestOtherOptionsAreTheUsers(t *testing.T) {
	parameters := map[string]string{
		"max_connections": "200", "innodb_buffer_pool_size": "1G", "skip_name_resolve": "ON", "loose-audit_log_format": "JSON", "log_bin_trust_function_creators": "ON",
		"binlog_expire_logs_seconds": "3600", "replica_parallel_workers": "8", "slave_compressed_protocol": "ON", "sync_binlog": "0", "sync_relay_log": "0",
		"innodb_flush_log_at_trx_commit": "2", "tls_version": "TLSv1.3", "validate_password.policy": "STRONG", "log_error_verbosity": "3", "read_buffer_size": "1M",
		"sql_mode": "", "init_connect": "SET @a = 1", "slow_query_log": "ON", "port_open_timeout": "1", "admin_port": "33062", "performance_schema_digests_size": "100",
		"event_scheduler": "OFF", "replica_net_timeout": "4", "innodb_doublewrite": "OFF", "require_secure_transport": "ON", "user_statistics": "1",
	}
	if problems := mycnf.Check(parameters); len(problems) != 0 {
		t.Errorf("%v", problems)
	}
}

func TestDurabilityIsNotForTheUserWithSemiSync(t *testing.T) {
	for _, key := range []string{"sync_binlog", "sync-binlog", "loose_sync_binlog", "innodb_flush_log_at_trx_commit", "innodb-flush-log-at-trx-comm"} {
		if problems := (mycnf.Target{SemiSync: true}).Check(map[string]string{key: "1"}); len(problems) != 1 {
			t.Errorf("%s with semi-sync: %v", key, problems)
		}
		if problems := mycnf.Check(map[string]string{key: "1"}); len(problems) != 0 {
			t.Errorf("%s without semi-sync: %v", key, problems)
		}
	}
}

func TestKeysAndValuesThatDoNotFitALineAreRefused(t *testing.T) {
	for key, value := range map[string]string{
		"":                               "1",
		" x":                             "1",
		"x ":                             "1",
		"x y":                            "1",
		"x=y":                            "1",
		"x\nsuper_read_only":             "OFF",
		"[client]":                       "",
		"!include":                       "/etc/x",
		"--x":                            "1",
		"#x":                             "1",
		"Max_Connections":                "100",
		"é":                              "1",
		"x\x00":                          "1",
		"a":                              "1\nsuper_read_only = OFF",
		"b":                              "1\r",
		"c":                              "1\x00",
		"d":                              "\xff",
		"e":                              "a\tb",
		"f":                              strings.Repeat("x", 4000),
		strings.Repeat("g", 1<<16):       "1",
		strings.Repeat("skip_", 200_000): "1",
	} {
		problems := mycnf.Check(map[string]string{key: value})
		if len(problems) != 1 {
			t.Errorf("%.40q = %.40q: %v", key, value, problems)
			continue
		}
		if text := problems[0].Error(); len(text) > 400 || strings.ContainsAny(text, "\n\x00") {
			t.Errorf("%.40q: the message is not fit to be shown: %.500q", key, text)
		}
	}
}

func TestValuesOutOfBoundsAreRefused(t *testing.T) {
	for key, values := range map[string][]string{
		"replica_net_timeout": {"3", "61", "0", "", "x", "-1", "5s"}, "slave-net-timeout": {"3600"}, "loose_replica_net_timeout": {"1"}, "max_connections": {"1", "19", "1000000"},
	} {
		for _, value := range values {
			problems := mycnf.Check(map[string]string{key: value})
			if len(problems) != 1 || !strings.Contains(problems[0].Remedy, "number from") {
				t.Errorf("%s = %q: %v", key, value, problems)
			}
		}
	}
}

func TestTheSameOptionTwiceIsRefused(t *testing.T) {
	for _, pair := range [][2]string{{"max_connections", "max-connections"}, {"replica_net_timeout", "slave_net_timeout"}, {"loose_x", "x"}, {"name_resolve", "skip_name_resolve"}} {
		problems := mycnf.Check(map[string]string{pair[0]: "30", pair[1]: "31"})
		if len(problems) != 1 || !strings.Contains(problems[0].Error(), pair[0]) || !strings.Contains(problems[0].Error(), pair[1]) {
			t.Errorf("%v: %v", pair, problems)
		}
	}
}

func TestOptionsThatTheVersionLacksAreRefused(t *testing.T) {
	for _, c := range []struct {
		version, key string
		lacks        bool
	}{
		{"8.0.42", "expire_logs_days", false}, {"8.4.0", "expire_logs_days", true}, {"8.4.0", "expire-logs-days", true}, {"8.4.0", "loose_expire_logs_days", false},
		{"8.4.0", "default-authentication-plugin", true}, {"8.4.0", "master_info_repository", true}, {"8.4.0", "skip-host-cache", true}, {"8.0.30", "query_cache_size", true},
		{"9.7.4", "innodb_log_file_size", true}, {"8.4.0", "innodb_log_file_size", false},
	} {
		server, err := flavor.Detect(c.version)
		if err != nil {
			t.Fatal(err)
		}
		problems := mycnf.Target{Server: server}.Check(map[string]string{c.key: "1"})
		if (len(problems) == 1) != c.lacks {
			t.Errorf("%s on %s: %v", c.key, c.version, problems)
		}
		if c.lacks && !strings.Contains(problems[0].Reason, c.version) {
			t.Errorf("%v does not name the version", problems[0])
		}
	}
}

func TestProblemsComeInOrder(t *testing.T) {
	problems := mycnf.Check(map[string]string{"port": "1", "datadir": "/", "user": "x", "read_only": "0"})
	var keys []string
	for _, p := range problems {
		keys = append(keys, p.Key)
	}
	if got := strings.Join(keys, " "); got != "datadir port read_only user" {
		t.Errorf("order %s", got)
	}
}

func TestAdditionalFilesAreHeldToTheSameRules(t *testing.T) {
	for _, c := range []struct{ name, content, at string }{
		{"nothing", "", ""},
		{"comments and blanks", "# super_read_only = OFF\n; port=1\n\n  \t\r\n", ""},
		{"a user's option", "[mysqld]\nmax_connections = 200 # enough\r\ninit_connect='a # b'\n\tskip-name-resolve\n", ""},
		{"bounds behind quotes and comments", "max_connections = \"200\" # x\nreplica_net_timeout='10'", ""},
		{"another program's section", "[client]\nsocket = /x\n[mysqldump]\nuser = x\n", "x.cnf:4"},
		{"a client's section", "[client]\nsocket = /x\nport=1\n[mysql]\nuser = x\n", ""},
		{"no section", "super_read_only = OFF", "x.cnf:1: super_read_only"},
		{"a section", "[mysqld]\n\n  super-read-only=0", "x.cnf:3: super-read-only"},
		{"the section of a version", "[mysqld-8.4]\nread_only=0", "x.cnf:2: read_only"},
		{"the section of all servers", "[server]\nread_only=0", "x.cnf:2: read_only"},
		{"a section in capitals", "[MySQLd]\nread_only=0", "x.cnf:2: read_only"},
		{"back in the server's section", "[client]\nport=1\n[ mysqld ] x\nport=1", "x.cnf:4: port"},
		{"an include", "!include /etc/x.cnf", "x.cnf:1"},
		{"an include of a folder", "  !includedir /etc/x", "x.cnf:1"},
		{"an open section", "[mysqld\nmax_connections=200", "x.cnf:1"},
		{"a name that is none", "[mysqld]\nmax connections = 5", "x.cnf:2: max connections"},
		{"a control character", "[client]\nx=\x00", "x.cnf:2"},
		{"a carriage return inside", "x=1\rsuper_read_only=0", "x.cnf:1"},
		{"a blank that is none", "\u00a0super_read_only=0", "x.cnf:1"},
		{"a byte order mark", "\ufeff[mysqld]\nx=1", "x.cnf:1"},
		{"a long line", "x=" + strings.Repeat("y", 4000), "x.cnf:1"},
		{"a bound", "max_connections = 1", "x.cnf:1: max_connections"},
		{"an unclosed quote before a comment", "max_connections = '200 # x", "x.cnf:1: max_connections"},
	} {
		problems := mycnf.Target{}.CheckFile("x.cnf", c.content)
		switch {
		case c.at == "" && len(problems) > 0:
			t.Errorf("%s: %v", c.name, problems)
		case c.at != "" && (len(problems) != 1 || !strings.HasPrefix(problems[0].Key, c.at)):
			t.Errorf("%s: %v, want one at %s", c.name, problems, c.at)
		}
	}
}

func TestRemediesNameWhatThereIs(t *testing.T) {
	for _, key := range []string{"super_read_only", "offline_mode", "innodb_force_recovery", "ssl_ca", "ssl_cert", "ssl_key", "ssl_capath"} {
		for _, p := range mycnf.Check(map[string]string{key: "1"}) {
			for _, none := range []string{"fence", "reinit", "spec.certificates"} {
				if strings.Contains(p.Remedy, none) {
					t.Errorf("%s: there is no %s: %s", key, none, p.Remedy)
				}
			}
		}
	}
}
