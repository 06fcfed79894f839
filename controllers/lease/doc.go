// Package lease makes the Lease of the primary role and the identity with which each instance uses it, and
// shows in the Cluster's status who holds it.
//
// What holds:
//   - The operator makes the Lease and never writes it again: the instances alone acquire, renew and release it.
//   - A Lease that is missing on a Cluster that ever had a primary is made as held by that primary: its Pod
//     may still believe that it holds it, and has to be waited for.
//   - Renewals cause no reconcile and no write; only a change of the holder does.
//   - An instance may follow its own Cluster, write its status and use its own Cluster's Lease; it may not read
//     Secrets and not make or delete the Lease.
//   - The identity of a removed instance goes once its Pod is gone: until then it needs it to stop in order.
//
// It owns status.primaryLease and the condition LeaseReady, which names what keeps instances from their identity or
// their Lease.
package lease
