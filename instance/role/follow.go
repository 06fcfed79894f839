package role

import (
	"fmt"

	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

// follow keeps this instance a replica of the current primary.
func follow(f Facts, i Intent) Decision {
	m := f.MySQL
	if !m.SuperReadOnly {
		return do(Replica, Demote, "not strictly read-only without being the primary")
	}
	r := m.Replication
	attached := r != nil && protocol.HostInstance(r.SourceHost) == i.CurrentPrimary
	if attached && r.IORunning && r.SQLRunning && !i.Diverged {
		return keepReplica(f, i)
	}
	if i.Diverged {
		return stayOut(f, i)
	}
	if attached && r.Broken() && !f.RetryDue {
		return wait(Replica, "replication stopped with an error and is tried again from time to time")
	}
	if r != nil && !attached {
		if d, due := leaveSource(f); due {
			return d
		}
	}
	return attach(f, i, attached)
}

// keepReplica is the steady state of a replica.
func keepReplica(f Facts, i Intent) Decision {
	if d, due := acknowledging(f); due {
		return d
	}
	if d, due := committing(f); due {
		return d
	}
	switch {
	case f.MySQL.Offline && f.LatelyPrimary:
		return wait(Replica, "following "+i.CurrentPrimary+"; clients are let in once none is led here to write")
	case f.MySQL.Offline:
		return do(Replica, AdmitClients, "letting clients in")
	}
	if f.SemiSync && f.MySQL.SemiSync.ReplicaMissing {
		return rest(Replica, fmt.Sprintf("following %s without acknowledging commits: %s", i.CurrentPrimary, notLoaded("replica")))
	}
	return rest(Replica, "following "+i.CurrentPrimary)
}

// notLoaded says why a side of semi-synchronous replication cannot be switched on, and what helps.
func notLoaded(side string) string {
	return fmt.Sprintf("the plugin semisync_%s is not loaded until the server starts anew: delete its Pod", side)
}

// acknowledging switches the replica side of semi-synchronous replication on. Where its plugin is not loaded the
// instance follows all the same: a replica that does not acknowledge is better than none.
func acknowledging(f Facts) (Decision, bool) {
	if s := f.MySQL.SemiSync; f.SemiSync && !s.ReplicaEnabled && !s.ReplicaMissing {
		return do(Replica, Acknowledge, "acknowledging commits"), true
	}
	return Decision{}, false
}

// committing switches a former primary's source side off, behind which its applier waits for acknowledgements
// of its own. That takes a second in the server, and the receiver acknowledges before it.
func committing(f Facts) (Decision, bool) {
	if f.MySQL.SemiSync.SourceEnabled {
		return do(Replica, ReplicaSemiSync, "a replica's commits wait for nobody"), true
	}
	return Decision{}, false
}

// leaveSource makes ready to leave an instance that is not the primary any more: what it sent is applied first.
// The rest is done by Follow, which looks again.
func leaveSource(f Facts) (Decision, bool) {
	r := f.MySQL.Replication
	if r.IORunning && !f.MySQL.Unapplied().IsEmpty() {
		return do(Replica, StopReceiver, "leaving "+protocol.HostInstance(r.SourceHost)), true
	}
	if r.SQLErrno != 0 && !f.MySQL.Unapplied().IsEmpty() {
		return wait(Replica, fmt.Sprintf("the applier stopped with error %d while transactions of the former primary are not applied: %s", r.SQLErrno, r.SQLError)), true
	}
	return applyAll(f)
}

// attach starts replication from the current primary once this instance is known to hold nothing that the
// primary does not.
func attach(f Facts, i Intent, attached bool) Decision {
	m := f.MySQL
	p, answered := f.Peers.find(i.CurrentPrimary)
	switch {
	case f.Peers == nil:
		return do(Replica, AskPeers, "comparing with "+i.CurrentPrimary)
	case (!answered || p.Generation != i.Generation) && !attached && m.Replication != nil && m.Replication.IORunning:
		// A former primary that comes back may send what nobody else has.
		return do(Replica, StopReceiver, "leaving "+protocol.HostInstance(m.Replication.SourceHost))
	case !answered && m.Replication != nil && !m.Replication.SQLRunning && m.Replication.SQLErrno == 0 && !m.Unapplied().IsEmpty():
		if d, due := committing(f); due {
			return d
		}
		return do(Replica, StartApplier, "applying what was received while the primary is not reachable")
	case !answered:
		return wait(Replica, i.CurrentPrimary+" does not answer")
	case p.Generation != i.Generation:
		return wait(Replica, i.CurrentPrimary+" speaks of another generation")
	}
	if errant := Errant(m.Held(), p.Executed, p.ServerUUID); !errant.IsEmpty() {
		d := wait(Replica, fmt.Sprintf("holds %s that %s does not, and stays out until it is re-initialised: %s", transactions(errant), i.CurrentPrimary, errant))
		d.Errant = errant
		return d
	}
	if attached {
		return do(Replica, StartReplica, "following "+i.CurrentPrimary)
	}
	// Before the receiver starts, which it would otherwise have to do twice.
	if d, due := acknowledging(f); due {
		return d
	}
	d := do(Replica, Follow, "following "+i.CurrentPrimary)
	held := m.Held()
	d.Step.Source, d.Step.Executed = i.CurrentPrimary, &held
	return d
}

// stayOut keeps a diverged instance out of replication, with its data as it is.
func stayOut(f Facts, i Intent) Decision {
	if r := f.MySQL.Replication; r != nil && (r.IORunning || r.SQLRunning) {
		return do(Replica, StopReplica, "diverged from the primary")
	}
	if f.Peers == nil {
		return do(Replica, AskPeers, "comparing with "+i.CurrentPrimary)
	}
	p, answered := f.Peers.find(i.CurrentPrimary)
	d := wait(Replica, "diverged from the primary: it stays out until it is re-initialised")
	if answered {
		d.Errant = Errant(f.MySQL.Held(), p.Executed, p.ServerUUID)
	}
	return d
}

// Errant is what an instance holds that the primary does not. Transactions that the primary itself
// committed do not count: a replica may have received them after the primary was asked.
func Errant(held, primaryExecuted gtid.Set, primaryUUID string) gtid.Set {
	return held.Minus(primaryExecuted).Minus(held.BySource(primaryUUID))
}
