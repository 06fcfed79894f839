// Package mysqld runs the server process: it starts, stops, kills and reaps it,
// keeps it running, and passes its log on.
//
// Invariants:
//
//   - The Reaper owns every wait of the process it lives in. Whatever the manager
//     starts is started through it; a process started with os/exec beside it loses
//     its exit status. There is one Reaper per process.
//   - A signal is never sent to a process id after the process was reaped, so it
//     never meets a stranger that was given the same id.
//   - No server outlives its manager: it is killed when the manager ends, however
//     that happens.
//   - The end of the server is known as soon as the kernel tells, without polling.
//
// All paths come from the caller. The package imports protocol, logr and
// golang.org/x/sys; it knows nothing of SQL.
package mysqld
