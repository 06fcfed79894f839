// Package server is the HTTP side of an instance manager: the control API over
// mutual TLS, the probes and the metrics in the clear.
//
// What must stay true:
//
//   - Probes answer from what the manager already knows. They ask neither the API server nor the database.
//   - Liveness fails for one thing only: a former holder of the primary lease that had to fence its server
//     and has not reached the API server since. A replica's liveness depends on nothing, and a server that
//     is down is no reason to restart its manager.
//   - No probe ends the making of data, however large they are.
//   - Nobody changes anything through the control API but the operator; instances may read.
//
// The package imports protocol, the API types and the Prometheus client. It knows no SQL.
package server
