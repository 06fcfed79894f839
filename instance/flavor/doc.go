// Package flavor holds what differs between server products and their versions, as tables: option and plugin names,
// statements, capabilities, variables that a version no longer has. A [Server] is such a product in one version, a plain
// value. No other package asks which flavor or version it deals with; it reads a field or calls a method of the Server.
//
// # Invariants
//
//   - A Server comes from [For], [Detect] or [ForImage] and is supported: MySQL and Percona Server from 8.0.26 on, the
//     first version that knows the names source and replica throughout. What is older, or MariaDB, is refused with an
//     error that says so, never treated as the nearest thing.
//   - Statements are built from literals that [Quote] makes. They are safe in a session whose sql_mode has no
//     NO_BACKSLASH_ESCAPES, which a session of ours therefore sets by itself.
//   - No statement here writes a transaction of its own on a replica.
//
// MariaDB is a flavor by name only so far. It will be a second table, not an interface.
//
// Imports: the standard library only. Pure: no clock, no environment, no I/O.
package flavor
