// Package role decides what an instance does about the primary role.
//
// Decide is a pure function: the facts of this instance and the intent of the
// Cluster go in, one Step comes out. The role loop carries the step out, reads
// the facts again and asks again, until the answer is Rest or Wait. A step may
// be repeated at any time: what was done is seen in the facts, never
// remembered.
//
// What must stay true, whatever the facts:
//
//   - Writes are opened only by the instance that the Cluster names as
//     currentPrimary, while it holds the primary lease, and after both were
//     read once more from the API server itself.
//   - The lease is given back only when the server is provably not writable.
//   - A replica's relay log with transactions that are not applied yet is never
//     discarded while its source is gone or the primary is being changed.
//   - An instance that holds transactions which the primary does not is neither
//     promoted nor attached.
//
// The package imports gtid and protocol. It knows no clock, no client, no SQL.
package role
