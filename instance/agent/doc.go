// Package agent is what an instance manager does besides running its server:
// it follows the Cluster and the primary Lease, keeps the Lease, carries out
// the role that role.Decide finds, reports to the operator and the peers,
// reloads certificates, and ends in order.
//
// Each part is a small type with Run(ctx) error, started by one errgroup:
//
//   - Watcher: the Cluster and the Lease as last seen, with their age.
//   - Keeper: acquires, renews and releases the Lease, and fences the server when it cannot.
//   - Loop: facts and intent in, one step carried out, again until there is nothing to do.
//   - Reporter: one Report at a time, read anew on a cadence, streamed to watchers.
//   - Certificates: the key pairs of the control API, reloaded when the mounted files change.
//   - Shutdown: from SIGTERM to the end of the server.
//
// What must stay true:
//
//   - The Keeper's deadlines depend on nothing but its own clock and its own calls: a hanging API server, a
//     hanging server or a hanging role loop delays neither the demotion nor the kill.
//   - Deadlines count from the start of the last renewal that succeeded, on a clock that goes on while the
//     machine is suspended. Nobody's wall clock is ever compared with anything.
//   - Writes are opened by the Loop alone, and only while the Lease is in force with time to spare.
//   - A view of the Cluster or the Lease is never replaced by an older one.
//
// The package imports the API types, the pure packages under instance, and the part of client-go below its
// generated clients, so that an idle manager stays small. It reads no environment.
package agent
