// Package topology makes and keeps a Cluster's instances and decides which of them is the primary. The rules are in
// package core; this package looks, writes down what was decided, and acts.
//
// One pass:
//
//	observe → core.Decide → (ask every instance anew → observe → core.Decide) → what need not be committed
//	  → commit the status → act → events
//
// What holds:
//   - Everything is read before anything is decided. An instance that does not answer is a fact; a read of the API
//     server that fails ends the pass.
//   - The status is written with the resourceVersion that was read. A conflict means that nothing was done, or
//     no more than what rests on the status as it was read, and was proved to be.
//   - Nothing is acted on by a Cluster from the cache alone: either the status was just written, or the object is
//     looked at in the API server itself and must be the one that was read.
//   - An action names the Pod it means by UID. The label of the primary is given only while the API server shows no
//     other Pod with it.
//   - What is remembered in memory (when a Lease was seen to change, the last reports) may be lost at any time: a
//     new process only waits longer.
//
// It owns Pods, volume claims, role labels, and in the status all that no other reconciler owns.
package topology
