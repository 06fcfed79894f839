// Package provision makes the data directory of an instance: empty for the first
// one of a Cluster, as a clone of the primary for every other.
//
// Invariants:
//
//   - The state file is on disk before the data directory is touched. It names the
//     Cluster's UID and the instance, so data that was moved here is recognised.
//   - A data directory is wiped only when this very instance of this very Cluster
//     was still making it. Everything else is refused with a Refusal.
//   - A server without a decision by the Cluster never becomes a database of its
//     own: what was initialised while waiting is thrown away by the clone.
//   - One manager holds the volume at a time, by a lock on it.
//
// It imports mysqld and mysql, and takes all paths from the caller.
package provision
