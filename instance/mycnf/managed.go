package mycnf

import "strings"

// rule says why a user may not set an option.
type rule struct {
	name   string // as spellings returns it; a trailing * stands for all options that begin like this
	reason string
	remedy string
	// semiSync limits the rule to clusters with semi-synchronous replication.
	semiSync bool
}

const (
	leaveOut     = "remove it"
	useStatus    = "remove it; kubectl cnmsql promote changes who accepts writes"
	useSemiSync  = "use spec.mysql.semiSync, minSyncReplicas and maxSyncReplicas"
	oneAtATime   = "remove it, and set it by hand on the one instance that needs it"
	whoIsPrimary = "the operator alone decides which instance accepts writes"
	identityOf   = "it identifies the instance in replication and is different on each"
	sameData     = "replicas would silently hold other data than the primary"
	positions    = "replication and failover rely on GTIDs in every binary log"
	received     = "transactions that were received and acknowledged would be lost"
	where        = "paths are laid out by the operator, on the instance's volumes"
	startsDiff   = "it makes mysqld do something else than serve"
	reachable    = "the Services and the instance manager rely on it"
	certificates = "certificates are issued and rotated by the operator"
	plugins      = "the list of plugins to load is managed, and a second list could replace it"
)

// managed lists what a user may not set. It is one list for all versions: an option that a version does not know would
// keep it from starting anyway.
var managed = []rule{
	{name: "server_id", reason: identityOf, remedy: leaveOut},
	{name: "server_id_bits", reason: identityOf, remedy: leaveOut},
	{name: "server_uuid", reason: identityOf, remedy: leaveOut},
	{name: "report_*", reason: identityOf, remedy: leaveOut},

	{name: "gtid_mode", reason: positions, remedy: leaveOut},
	{name: "enforce_gtid_consistency", reason: positions, remedy: leaveOut},
	{name: "log_bin", reason: positions, remedy: leaveOut},
	{name: "log_bin_index", reason: positions, remedy: leaveOut},
	{name: "log_replica_updates", reason: positions, remedy: leaveOut},
	{name: "binlog_format", reason: "it has a field of its own", remedy: "use spec.mysql.binlogFormat"},
	{name: "replica_preserve_commit_order", reason: "a replica would show a state that the primary never had", remedy: leaveOut},
	{name: "replica_parallel_type", reason: "a replica would show a state that the primary never had", remedy: leaveOut},
	{name: "rpl_stop_replica_timeout", reason: "the instance manager is not to be held up by it", remedy: leaveOut},
	{name: "binlog_do_db", reason: sameData, remedy: leaveOut},
	{name: "binlog_ignore_db", reason: sameData, remedy: leaveOut},
	{name: "replicate_*", reason: sameData, remedy: leaveOut},
	{name: "replica_skip_errors", reason: sameData, remedy: leaveOut},
	{name: "replica_exec_mode", reason: sameData, remedy: leaveOut},
	{name: "init_replica", reason: sameData, remedy: leaveOut},
	{name: "init_file", reason: "its statements would run on replicas, too", remedy: "use bootstrap.initdb.postInitSQL"},

	{name: "read_only", reason: whoIsPrimary, remedy: useStatus},
	{name: "super_read_only", reason: whoIsPrimary, remedy: useStatus},
	{name: "innodb_read_only", reason: whoIsPrimary, remedy: useStatus},
	{name: "offline_mode", reason: whoIsPrimary, remedy: useStatus},
	{name: "skip_replica_start", reason: "the instance manager starts replication when it is safe", remedy: leaveOut},
	{name: "persisted_globals_load", reason: "persisted variables could make a restarted instance writable", remedy: "use spec.mysql.parameters instead of SET PERSIST"},
	{name: "group_replication*", reason: "group replication is not set up by parameters", remedy: leaveOut},

	{name: "relay_log*", reason: received, remedy: leaveOut},
	{name: "rpl_semi_sync_*", reason: "semi-synchronous replication is managed", remedy: useSemiSync},
	{name: "rpl_semi_sync", reason: "semi-synchronous replication is managed", remedy: useSemiSync},
	{name: "sync_binlog", reason: "with semi-sync an acknowledged commit must be on disk", remedy: leaveOut, semiSync: true},
	{name: "innodb_flush_log_at_trx_commit", reason: "with semi-sync an acknowledged commit must be on disk", remedy: leaveOut, semiSync: true},
	{name: "innodb_force_recovery", reason: "it hides damage and would be applied to all instances", remedy: "remove it; delete the Pod and the volume claims of the damaged instance, and it is made anew from the primary"},
	{name: "tc_heuristic_recover", reason: "it decides about prepared transactions on all instances", remedy: oneAtATime},

	{name: "datadir", reason: where, remedy: leaveOut},
	{name: "basedir", reason: where, remedy: leaveOut},
	{name: "tmpdir", reason: where, remedy: leaveOut},
	{name: "replica_load_tmpdir", reason: where, remedy: leaveOut},
	{name: "pid_file", reason: where, remedy: leaveOut},
	{name: "log_error", reason: "the error log goes to the Pod's log", remedy: leaveOut},
	{name: "secure_file_priv", reason: "the server must not read or write files for its clients", remedy: leaveOut},
	{name: "plugin_dir", reason: where, remedy: leaveOut},
	{name: "innodb_data_home_dir", reason: where, remedy: leaveOut},
	{name: "innodb_log_group_home_dir", reason: where, remedy: leaveOut},
	{name: "innodb_undo_directory", reason: where, remedy: leaveOut},
	{name: "innodb_doublewrite_dir", reason: where, remedy: leaveOut},
	{name: "innodb_temp_tablespaces_dir", reason: where, remedy: leaveOut},
	{name: "innodb_directories", reason: "data outside of the data directory is not copied to new instances", remedy: leaveOut},
	{name: "chroot", reason: where, remedy: leaveOut},
	{name: "user", reason: "the Pod's security context decides", remedy: "use spec.podSecurityContext"},

	{name: "port", reason: reachable, remedy: leaveOut},
	{name: "bind_address", reason: reachable, remedy: leaveOut},
	{name: "socket", reason: reachable, remedy: leaveOut},
	{name: "networking", reason: reachable, remedy: leaveOut},
	{name: "skip_networking", reason: reachable, remedy: leaveOut},
	{name: "grant_tables", reason: "everybody could log in without a password", remedy: leaveOut},
	{name: "skip_grant_tables", reason: "everybody could log in without a password", remedy: leaveOut},
	{name: "mysqlx*", reason: "the X protocol would be a way in that nothing watches", remedy: leaveOut},

	{name: "ssl", reason: certificates, remedy: leaveOut},
	{name: "ssl_ca", reason: certificates, remedy: leaveOut},
	{name: "ssl_capath", reason: certificates, remedy: leaveOut},
	{name: "ssl_cert", reason: certificates, remedy: leaveOut},
	{name: "ssl_key", reason: certificates, remedy: leaveOut},
	{name: "ssl_crl", reason: certificates, remedy: leaveOut},
	{name: "ssl_crlpath", reason: certificates, remedy: leaveOut},

	{name: "plugin_load", reason: plugins, remedy: "use INSTALL PLUGIN or INSTALL COMPONENT on the primary"},
	{name: "plugin_load_add", reason: plugins, remedy: "use INSTALL PLUGIN or INSTALL COMPONENT on the primary"},
	{name: "clone", reason: "new instances are made with the clone plugin", remedy: leaveOut},
	{name: "performance_schema", reason: "without it nobody could tell whether a clone of a new instance is complete", remedy: "remove it; to save memory set the performance_schema_* sizes"},
	{name: "innodb", reason: "the operator relies on InnoDB", remedy: leaveOut},
	{name: "terminology_use_previous", reason: "the instance manager reads today's names", remedy: leaveOut},

	{name: "initialize", reason: startsDiff, remedy: leaveOut},
	{name: "initialize_insecure", reason: startsDiff, remedy: leaveOut},
	{name: "validate_config", reason: startsDiff, remedy: leaveOut},
	{name: "help", reason: startsDiff, remedy: leaveOut},
	{name: "version", reason: startsDiff, remedy: leaveOut},
	{name: "daemonize", reason: startsDiff, remedy: leaveOut},
	{name: "gdb", reason: startsDiff, remedy: leaveOut},
	{name: "no_defaults", reason: startsDiff, remedy: leaveOut},
	{name: "print_defaults", reason: startsDiff, remedy: leaveOut},
	{name: "defaults_*", reason: startsDiff, remedy: leaveOut},
}

// matches reports whether the rule is about an option of this name. An abbreviation counts when it is long enough to
// mean something and is no option in its own right.
func (r rule) matches(name string) bool {
	stem, family := strings.CutSuffix(r.name, "*")
	if name == stem || family && strings.HasPrefix(name, stem) {
		return true
	}
	return len(name) >= shortestAbbreviation && strings.HasPrefix(stem, name) && !ownOption[name]
}

const shortestAbbreviation = 4

// ownOption holds the options of users whose names are the beginning of a managed one's.
var ownOption = map[string]bool{"innodb_doublewrite": true}

// ruleFor finds the rule about any of the ways to read the key.
func ruleFor(key string, semiSync bool) (rule, bool) {
	for _, name := range spellings(key) {
		for _, r := range managed {
			if r.matches(name) && (semiSync || !r.semiSync) {
				return r, true
			}
		}
	}
	return rule{}, false
}
