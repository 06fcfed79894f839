package mycnf

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Defaults that users may override.
const (
	// defaultNetTimeout is in seconds: three of flavor.HeartbeatPeriod. The server's default is a minute.
	defaultNetTimeout = 6
	// defaultBinlogExpiry is in seconds, a week. The server's default is a month, enough to fill a small volume.
	defaultBinlogExpiry = 604800
)

// setting is one line of the file.
type setting struct{ key, value string }

// section is a run of settings under a comment of one line.
type section struct {
	comment  string
	settings []setting
}

// Render returns the option file. The same input always gives the same text. Settings that [Target.Check] refuses are an
// error here as well, in case nobody has asked before; so is an input that makes no sense.
func Render(in Input) (string, error) {
	if err := in.validate(); err != nil {
		return "", fmt.Errorf("rendering my.cnf: %w", err)
	}
	if problems := in.check(); len(problems) > 0 {
		lines := make([]string, len(problems))
		for i, p := range problems {
			lines[i] = p.Error()
		}
		return "", fmt.Errorf("rendering my.cnf: %s", strings.Join(lines, "; "))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Options of %s for MySQL %s. Written by the instance manager before each start: changes here are lost.\n", in.InstanceName, in.Server.Version)
	b.WriteString("\n[mysqld]\n")
	write(&b, section{"Defaults. Parameters override them.", in.defaults()})
	write(&b, section{"Parameters of the Cluster.", in.parameters()})
	for _, name := range slices.Sorted(maps.Keys(in.AdditionalFiles)) {
		// Each file starts in the server's section, whatever the one before ended with.
		fmt.Fprintf(&b, "\n# Additional file %s.\n[mysqld]\n%s\n", strings.TrimSpace(name), strings.TrimSpace(in.AdditionalFiles[name]))
	}
	b.WriteString("\n# From here on all is managed, and wins over what stands above.\n[mysqld]\n")
	for _, s := range in.managed() {
		write(&b, s)
	}
	return b.String(), nil
}

func (in Input) check() []Problem {
	t := Target{Server: in.Server, SemiSync: in.SemiSync.Enabled}
	problems := t.Check(in.Parameters)
	for _, name := range slices.Sorted(maps.Keys(in.AdditionalFiles)) {
		if badText(name) {
			problems = append(problems, Problem{strconv.Quote(name), "the file name has control characters", "rename it"})
		}
		problems = append(problems, t.CheckFile(name, in.AdditionalFiles[name])...)
	}
	return problems
}

func write(b *strings.Builder, s section) {
	if len(s.settings) == 0 {
		return
	}
	fmt.Fprintf(b, "\n# %s\n", s.comment)
	for _, o := range s.settings {
		b.WriteString(line(o.key, o.value) + "\n")
	}
}

// defaults are left out where the user sets the same option, in whatever spelling.
func (in Input) defaults() []setting {
	set := map[string]bool{}
	for key := range in.Parameters {
		set[identity(key)] = true
	}
	var out []setting
	add := func(key string, value uint64) {
		if !set[identity(key)] {
			out = append(out, setting{key, strconv.FormatUint(value, 10)})
		}
	}
	// An explicit size would disable innodb_dedicated_server, and parts fit only the size they were derived with.
	if !set["innodb_buffer_pool_size"] && !set["innodb_dedicated_server"] {
		size, instances := bufferPool(in.MemoryLimitBytes)
		add("innodb_buffer_pool_size", size)
		add("innodb_buffer_pool_instances", instances)
	}
	add("binlog_expire_logs_seconds", defaultBinlogExpiry)
	add("replica_net_timeout", defaultNetTimeout)
	if in.SemiSync.Enabled {
		add("sync_relay_log", 1)
	}
	if !set[identity("skip_name_resolve")] {
		out = append(out, setting{"skip_name_resolve", "ON"})
	}
	return out
}

func (in Input) parameters() []setting {
	var out []setting
	for _, key := range slices.Sorted(maps.Keys(in.Parameters)) {
		out = append(out, setting{key, in.Parameters[key]})
	}
	return out
}

func (in Input) managed() []section {
	return []section{
		{"A server that starts accepts no clients, no writes, and follows nobody: roles are given at run time.", []setting{
			{"offline_mode", "ON"},
			{"super_read_only", "ON"},
			{"read_only", "ON"},
			{"skip_replica_start", "ON"},
			{"persisted_globals_load", "OFF"},
		}},
		{"Identity.", []setting{
			{"server_id", strconv.FormatUint(uint64(in.ServerID), 10)},
			{"report_host", in.ReportHost},
			{"report_port", strconv.Itoa(int(in.Port))},
		}},
		{"Replication.", in.replication()},
		{"Semi-synchronous replication. Both sides are switched on at run time, according to the role.", in.semiSync()},
		{"Network.", []setting{
			{"port", strconv.Itoa(int(in.Port))},
			{"bind_address", "*"},
			{"socket", in.SocketPath},
			{"mysqlx", "OFF"},
		}},
		{"TLS.", in.tls()},
		{"Files.", in.files()},
		{"Plugins.", in.plugins()},
	}
}

// stopReplicaSeconds is how long a statement that stops replication waits. An applier may take a minute to stop: it
// waits for the rest of a transaction of which its source has sent a part. The manager looks again instead.
const stopReplicaSeconds = "5"

func (in Input) replication() []setting {
	binlog, relay := path.Join(in.BinlogDir, "binlog"), path.Join(in.BinlogDir, "relay")
	out := []setting{
		{"gtid_mode", "ON"},
		{"enforce_gtid_consistency", "ON"},
		{"log_bin", binlog},
		{"log_bin_index", binlog + ".index"},
		{"binlog_format", in.binlogFormat()},
		{"log_replica_updates", "ON"},
		{"relay_log", relay},
		{"relay_log_index", relay + ".index"},
		{"relay_log_recovery", "OFF"},
		{"relay_log_purge", "ON"},
		{"replica_preserve_commit_order", "ON"},
		{"rpl_stop_replica_timeout", stopReplicaSeconds},
	}
	if !in.Server.CommitOrderPreserved {
		out = append(out, setting{"replica_parallel_type", "LOGICAL_CLOCK"})
	}
	return out
}

// semiSync loads both plugins in any case, so that semi-synchronous replication can be switched on in a server that
// runs: a plugin that is not loaded would need a restart of each server, and until then no replica could acknowledge and
// no primary wait. With both sides off they do nothing.
func (in Input) semiSync() []setting {
	names := in.Server.SemiSync
	out := []setting{
		{"plugin_load_add", names.SourcePlugin},
		{"plugin_load_add", names.ReplicaPlugin},
		{names.SourceEnabled, "OFF"},
		{names.ReplicaEnabled, "OFF"},
		{names.SourceTimeout, strconv.FormatInt(in.SemiSync.TimeoutMillis, 10)},
		{names.WaitForReplicaCount, strconv.Itoa(in.SemiSync.WaitForReplicaCount)},
		{names.WaitPoint, "AFTER_SYNC"},
		{names.WaitNoReplica, "ON"},
	}
	if in.SemiSync.Enabled {
		out = append(out, setting{"sync_binlog", "1"}, setting{"innodb_flush_log_at_trx_commit", "1"})
	}
	return out
}

func (in Input) tls() []setting {
	if in.TLS == (TLS{}) {
		return nil
	}
	return []setting{{"ssl_ca", in.TLS.CA}, {"ssl_cert", in.TLS.Cert}, {"ssl_key", in.TLS.Key}}
}

func (in Input) files() []setting {
	out := []setting{
		{"datadir", in.DataDir},
		{"pid_file", in.PidFile},
		{"tmpdir", in.TmpDir},
		{"secure_file_priv", "NULL"},
	}
	if in.ErrorLog != "" {
		out = append(out, setting{"log_error", in.ErrorLog})
	}
	return out
}

func (in Input) plugins() []setting {
	return []setting{{"plugin_load_add", in.Server.ClonePlugin}}
}
