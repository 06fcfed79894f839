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
//
// Which statements a version understands is asked of instance/flavor.
package mysql
