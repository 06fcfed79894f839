// Package fencing turns what people ask for in the annotation mysql.cnmsql.co/fencing into status.fencedInstances.
//
// What holds:
//   - The annotation on the Cluster is what a person wants, and the operator never takes a name out of it: a fence outlives
//     the Pod, the operator and a lost status.
//   - A request on a Pod is moved to the Cluster first and removed from the Pod then, so that it is never lost in between.
//   - A name that is no instance of the Cluster fences nobody, and is told in the condition FencingReady and an event.
//
// What a fence does lies elsewhere: routing, elections and the Pods with topology (controllers/topology/core), the server
// with the instance itself (instance/role).
//
// It owns status.fencedInstances and the condition FencingReady.
package fencing
