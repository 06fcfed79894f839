package flavor

// Removed is a variable that servers had once. One that has it in its option file does not start.
type Removed struct {
	Name string // in underscores
	// In is the first version known to be without it.
	In Version
	// Use says what to do instead.
	Use string
}

const dropIt = "remove it: it has no successor"

var (
	v80 = Version{8, 0, 26} // gone before the oldest version that is supported
	v84 = Version{8, 4, 0}
	v90 = Version{9, 0, 0}
	v97 = Version{9, 7, 0} // gone somewhere in 9.x
)

// removed lists the variables that people carry along in their settings. For those that left in one of the short-lived
// releases before a long-term one, In is the long-term release.
var removed = []Removed{
	{"expire_logs_days", v84, "use binlog_expire_logs_seconds"},
	{"default_authentication_plugin", v84, "use authentication_policy"},
	{"master_info_repository", v84, dropIt},
	{"relay_log_info_repository", v84, dropIt},
	{"master_info_file", v84, dropIt},
	{"relay_log_info_file", v84, dropIt},
	{"transaction_write_set_extraction", v84, dropIt},
	{"binlog_transaction_dependency_tracking", v84, dropIt},
	{"slave_rows_search_algorithms", v84, dropIt},
	{"log_bin_use_v1_row_events", v84, dropIt},
	{"skip_host_cache", v84, "use host_cache_size = 0"},
	{"character_set_client_handshake", v84, dropIt},
	{"avoid_temporal_upgrade", v84, dropIt},
	{"show_old_temporals", v84, dropIt},
	{"old_style_user_limits", v84, dropIt},
	{"language", v84, "use lc_messages"},
	{"old", v84, dropIt},
	{"new", v84, dropIt},
	{"mysql_native_password", v90, "move the accounts to caching_sha2_password"},
	{"mysql_native_password_proxy_users", v90, "move the accounts to caching_sha2_password"},
	{"replica_parallel_type", v97, dropIt},
	{"slave_parallel_type", v97, dropIt},
	{"innodb_log_file_size", v97, "use innodb_redo_log_capacity"},
	{"innodb_log_files_in_group", v97, "use innodb_redo_log_capacity"},
	{"innodb_undo_tablespaces", v97, "use CREATE UNDO TABLESPACE"},
	{"query_cache_size", v80, dropIt},
	{"query_cache_type", v80, dropIt},
	{"query_cache_limit", v80, dropIt},
	{"innodb_file_format", v80, dropIt},
	{"innodb_large_prefix", v80, dropIt},
	{"innodb_locks_unsafe_for_binlog", v80, "use transaction_isolation = READ-COMMITTED"},
	{"innodb_support_xa", v80, dropIt},
	{"innodb_checksums", v80, "use innodb_checksum_algorithm"},
	{"innodb_undo_logs", v80, "use innodb_rollback_segments"},
	{"log_warnings", v80, "use log_error_verbosity"},
	{"tx_isolation", v80, "use transaction_isolation"},
	{"secure_auth", v80, dropIt},
	{"sync_frm", v80, dropIt},
	{"multi_range_count", v80, dropIt},
	{"ignore_db_dirs", v80, dropIt},
	{"log_syslog", v80, "use log_error_services"},
	{"temp_pool", v80, dropIt},
	{"internal_tmp_disk_storage_engine", v80, dropIt},
}

// Lacks reports that this server does not know the variable any more, with what to use instead. The name is written with
// underscores and without prefixes. A variable that is not in the table is not judged.
func (s Server) Lacks(variable string) (Removed, bool) {
	for _, r := range removed {
		if r.Name == variable && s.Version.Compare(r.In) >= 0 {
			return r, true
		}
	}
	return Removed{}, false
}
