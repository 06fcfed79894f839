// Package core decides what the operator does about a Cluster's topology: which
// instance is the primary, which Pods and volumes exist, and where Services may
// lead.
//
// Decide is a pure function of a Snapshot. Its Decision holds the new status,
// which is committed first, with the resourceVersion that was read, and the
// actions, which follow only if that succeeded. A conflict means that the
// snapshot was stale and that nothing was done.
//
// What must stay true:
//
//  1. One writer. At no instant do two instances accept client writes.
//  2. Acknowledged stays. With semi-synchronous replication on, a commit that was
//     acknowledged to a client is held by every later primary.
//  3. The generation grows by exactly one with each promotion, and never
//     otherwise. Only the promoted instance writes it.
//  4. No errant history. An instance that holds a transaction which the current
//     primary does not is neither promoted nor attached nor routed to.
//  5. Routing follows the fact. A Pod carries the primary label only while it is
//     the current primary and reports itself writable in this generation.
//  6. Nothing is thrown away. No volume is deleted, and no empty primary is made
//     for a Cluster that ever had one.
//  7. Progress. Every wait has an event or a deadline that ends it, and says what
//     it waits for.
//  8. No memory in memory. All that safety needs is in the snapshot, so that the
//     operator may be killed at any point.
//
// The package imports the API, flavor, gtid and protocol. It knows no clock, no client
// and no logger.
package core
