// Package facts makes a core.Snapshot of what was read: the Cluster, its Pods, volume claims and Secrets, the Lease
// as the reader saw it change, and what the instances' managers said. The operator decides on such a snapshot, and
// the kubectl plugin explains by one; both read in their own way, and what they have read comes to the same here.
//
// What holds:
//   - A Pod of an earlier Cluster of the same name is not ours. A volume claim of its name holds data, whose ever it is.
//   - What could not be read is absent, and never good news.
//   - Trouble is told in the same words while nothing changes, and only once it has lasted.
//
// The package is pure. It imports the API types, core, objects, protocol and validate, and the kinds' own types.
package facts
