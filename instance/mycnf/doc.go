// Package mycnf renders a server's option file, my.cnf, and judges which settings a user may choose.
//
// # What the file promises
//
//   - A server that starts with it accepts no writes and follows nobody (super_read_only, skip_replica_start, both sides
//     of semi-sync off) whatever it was before: who is primary is decided at run time only. Variables that somebody
//     persisted with SET PERSIST are not loaded, because they would win over the file: a primary whose
//     super_read_only = OFF was persisted would come back writable after a crash.
//   - Semi-synchronous replication can be switched on in a server that runs: its plugins are loaded in any case.
//   - What a replica has acknowledged it still holds after mysqld, its container or its machine crashes, and applies without
//     its source: docs/adr/0005-relay-log.md has the experiment, crash_test.go the part of it that every test run repeats.
//     relay_log_recovery is OFF, since ON throws away what was received and not yet applied. Against a crash of the
//     machine the relay log must be on disk at the time of the acknowledgement, so with semi-sync sync_relay_log is 1
//     unless the user chooses otherwise. That has its price: the server flushes after each event, six times (measured
//     on 9.7) for a small transaction, one after the other, so the receiver takes no more than some hundreds of
//     transactions a second from a disk that needs 0.4 ms for a flush. Who sets it otherwise loses acknowledged
//     transactions when the primary is lost for good while a replica that acknowledged them is back from a crash of its
//     machine; and that replica's applier stops with an error at the torn relay log. The way out is RESET REPLICA, to be
//     taken only while a source that holds everything is there.
//   - What the file configures exists: no option carries the prefix loose-, so a server that does not know one of them
//     does not start, instead of running without it. mysqld --initialize, too, refuses what it does not know, and it
//     loads no plugins: who initialises with the file makes options loose in a copy of it.
//   - Managed settings come last in the file and so win over anything before them.
//
// # Refused settings
//
// [Check] refuses settings that are managed here or that would undo the promises above. The server accepts an option in
// many spellings: dashes for underscores, behind loose-, skip-, enable-, disable-, maximum- and plugin-, under its former
// name (slave, master). All are the same option to Check, and so are capitals and unambiguous abbreviations, which some
// versions accept. A setting is refused rather than dropped: who writes it expects an effect.
//
// Values are quoted so that the server reads exactly what was given. Text with line breaks or control characters cannot
// be written and is refused.
//
// Imports: the standard library and instance/flavor. Pure: knows no Kubernetes, no clock, no files.
package mycnf
