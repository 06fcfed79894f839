// Command chaos breaks a Cluster of three on a lab, in rounds, and holds it to
// its promises after each. Run it with `make chaos`, from the root of the
// checkout; docs/chaos.md tells a reader what it does and proves.
//
// Package plan turns a seed into rounds of faults. The faults themselves, with
// what begins and what repairs them, are here, in the files fault_*.go. While they go
// on, clients write (clients.go) and every change of the Cluster and its Pods is
// recorded (history.go); package judge decides whether the records show a broken
// promise (checks.go).
//
// What must stay true: every fault that was begun is repaired, also when the program is
// interrupted; a fault that could not be done is said to be so, never counted as
// done; nothing that is judged comes from the Cluster's own word alone.
package main
