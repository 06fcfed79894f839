// Package status is the one way in which reconcilers write a Cluster's status.
//
// Two shapes, for two kinds of writer:
//   - Patch, for topology, and for a list that has to be right whoever wrote it before (fencing): a merge patch of what
//     changed between two values of the Cluster, refused by the API server when the Cluster is not the one that was read.
//   - Apply, for the small reconcilers: exactly the fields and conditions that the reconciler owns, under its
//     own field manager, so that nobody writes another's. A field that a reconciler owned and leaves out of a
//     later Apply is removed: always give all of them.
//
// Neither writes when nothing changed.
package status
