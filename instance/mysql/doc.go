// Package mysql talks to the server: it reads the facts and carries out one step
// at a time. It is the only package that holds an *sql.DB.
//
// Invariants:
//
//   - Every call has a bound in time: the caller's context, and never longer than
//     Options.Timeout for a read.
//   - The connection is the Unix socket, as the control account. Passwords are
//     read anew for each connection and appear in no log line and no error.
//   - No statement writes a transaction of its own on a replica: a test compares
//     gtid_executed before and after every step.
//   - What could not be read is an error, never an empty value.
//   - A step may be repeated; done twice it changes nothing more.
//   - Only Stamp and FillStamps write in the course of time, and what they write
//     is in no GTID set that leaves this package.
//
// The heartbeat is a stamp per second, and so a transaction that a primary which
// is cut off may have written and nobody else has. Numbered as the server's own it
// would make each such primary a diverged one, although it tells nothing but the
// time. So stamps are numbered under a source of their own (gtid_next), on which
// every primary counts on from what it has. Three things follow:
//
//   - A former primary may have stamps that its successor lacks. The successor
//     begins behind them (stampsAside), since the former one would not acknowledge
//     what it has already, and fills the numbers between (FillStamps): then all
//     have all of them, and nobody will ever ask for a stamp that has left the
//     binary logs.
//   - A row may differ until that server stamps again. It is logged as a statement
//     that works on any row, and on none.
//   - A commit of a stamp waits for acknowledgements like any other. A stamp that
//     waits is a stall; one that fails tells that nobody can write.
//
// Which statements a version understands is asked of instance/flavor.
package mysql
