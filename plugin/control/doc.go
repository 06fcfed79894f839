// Package control asks instance managers for their reports, as the operator does, by the way that a person with
// kubectl has: through the API server, into the Pod (a port-forward), with the client certificate of the Cluster.
//
// What must stay true: it only reads; an answer of another Pod or another Cluster is no answer; every question ends
// in time.
//
// It imports protocol, the API, and client-go.
package control
