package role

import (
	"fmt"
	"strings"
	"time"

	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

// resume makes the instance that the Cluster names as its primary writable: after its promotion, after a
// restart of the server or the container, after a fence of its own, or after a switchover that was ended.
func resume(f Facts, i Intent) Decision {
	m := f.MySQL
	if m.Writable() {
		return keepPrimary(f, i)
	}
	if !m.SuperReadOnly {
		return do(Replica, Demote, "neither writable nor strictly read-only")
	}
	if f.ShuttingDown {
		return wait(Replica, "its Pod is being stopped")
	}
	if why := unresumable(f, i); why != "" {
		return refuseResume(f, why)
	}
	if d, due := takeLease(f, Replica); due {
		return d
	}
	if f.Peers == nil || !f.Peers.SinceLease {
		return do(Replica, AskPeers, "comparing with what the replicas hold")
	}
	for _, p := range f.Peers.Answers {
		// Its own numbers would be given out a second time, and whoever has the first ones would skip the second.
		if lost := p.Held.BySource(m.ServerUUID).Minus(m.Executed); !lost.IsEmpty() {
			return refuseResume(f, fmt.Sprintf("%s holds %s that this server committed and lost: %s", p.Instance, transactions(lost), lost))
		}
	}
	if d, due := reassert(f); due {
		return d
	}
	if m.Replication != nil {
		if rest := m.Unapplied(); !rest.IsEmpty() {
			return refuseResume(f, fmt.Sprintf("its relay log holds %s that are not applied: %s", transactions(rest), rest))
		}
		if m.Replication.IORunning {
			return do(Replica, StopReceiver, "a primary follows nobody")
		}
	}
	if s := m.SemiSync; f.SemiSync && (!s.SourceEnabled || s.ReplicaEnabled || s.WaitFor != i.AckCount) {
		return do(Replica, SourceSemiSync, "commits wait for acknowledgements")
	} else if !f.SemiSync && s.SourceEnabled {
		return do(Replica, SourceSemiSync, "commits do not wait for acknowledgements any more")
	}
	if !i.Live {
		return do(Replica, Confirm, "reading the Cluster and the Lease once more")
	}
	return do(Replica, OpenWrites, "opening for writes")
}

// unresumable says why this instance may not open again, whatever the others hold, before the lease is asked for.
func unresumable(f Facts, i Intent) string {
	switch {
	case i.Diverged:
		return "it is marked as diverged"
	case f.Lease.Unwatched:
		return "its watchdog process does not run"
	}
	if why := lostHistory(f.MySQL.Executed, i); why != "" {
		return why
	}
	if f.SemiSync && f.MySQL.SemiSync.SourceMissing {
		return "its commits would wait for no acknowledgement: " + notLoaded("source")
	}
	if f.Refusal.ofResume(i.Generation) {
		return f.Refusal.Why
	}
	return ""
}

// reassert is what comes before a server is opened again that somebody else made read-only. Whoever did that may
// know something that this manager does not: so every other instance has to be seen read-only and to hold nothing
// more, and it is not done over and over.
func reassert(f Facts) (Decision, bool) {
	c := f.Closed
	if c == nil {
		return Decision{}, false
	}
	const why = "somebody else made the server read-only; it is not opened: "
	if silent := f.Peers.Silent; len(silent) > 0 {
		return wait(Replica, why+strings.Join(silent, ", ")+" has not answered"), true
	}
	for _, p := range f.Peers.Answers {
		switch more := p.Held.Minus(f.MySQL.Executed); {
		case !p.ReadOnly:
			return wait(Replica, why+p.Instance+" takes writes"), true
		case !more.IsEmpty():
			return wait(Replica, fmt.Sprintf("%s%s holds %s that it does not: %s", why, p.Instance, transactions(more), more)), true
		}
	}
	switch {
	case c.Recorded:
		return Decision{}, false
	case c.Wait > 0:
		return wait(Replica, fmt.Sprintf("%sthe same was done less than the minimum time ago, %s are left", why, c.Wait.Round(time.Second))), true
	}
	return do(Replica, RecordReassert, "recording that the server, which somebody else made read-only, is opened again"), true
}

// keepPrimary is the steady state of a writable primary.
func keepPrimary(f Facts, i Intent) Decision {
	s := f.MySQL.SemiSync
	switch {
	case f.SemiSync && !s.SourceEnabled && !s.SourceMissing:
		return do(Primary, SourceSemiSync, "commits wait for acknowledgements")
	case !f.SemiSync && s.SourceEnabled:
		return do(Primary, SourceSemiSync, "commits do not wait for acknowledgements any more")
	case f.LetGo && s.SourceEnabled && s.Waiting > 0:
		// It is opened again as after any other step-down.
		return do(Primary, Demote, fmt.Sprintf("letting go %d commits that wait for acknowledgements: while they wait no replica can be cloned", s.Waiting))
	}
	if f.MySQL.Offline {
		return do(Primary, AdmitClients, "letting clients in")
	}
	if r := f.MySQL.Replication; r != nil && !r.IORunning && f.MySQL.Unapplied().IsEmpty() && siblings(f.Instance, protocol.HostInstance(r.SourceHost)) {
		// Nothing was received or applied since before it opened, and clients need not wait for this.
		return do(Primary, ResetReplica, "removing what is left of replication")
	}
	if f.SemiSync && s.SourceMissing {
		return rest(Primary, fmt.Sprintf("primary in generation %d; commits wait for no acknowledgement: %s", i.Generation, notLoaded("source")))
	}
	return rest(Primary, fmt.Sprintf("primary in generation %d", i.Generation))
}

// siblings tells that two instances are of one Cluster: their names differ in the number only. From any other
// source, a person replicates.
func siblings(a, b string) bool {
	const digits = "0123456789"
	return strings.TrimRight(a, digits) == strings.TrimRight(b, digits)
}

// lostHistory says why the executed set is not that of the primary which was promoted.
func lostHistory(executed gtid.Set, i Intent) string {
	switch {
	case i.PromotionUnreadable:
		return "the set recorded at its promotion (status.promotionGTIDExecuted) cannot be read"
	case i.PromotionExecuted == nil && i.Generation > 1:
		return "no set is recorded for its promotion (status.promotionGTIDExecuted)"
	case i.PromotionExecuted == nil:
		return ""
	}
	if lost := i.PromotionExecuted.Minus(executed); !lost.IsEmpty() {
		return fmt.Sprintf("it lost %s that it had when it was promoted: %s", transactions(lost), lost)
	}
	return ""
}

// refuseResume says why the role is not taken up again, and gives the lease back: the operator may promote
// another instance.
func refuseResume(f Facts, why string) Decision {
	d := wait(Replica, "does not open for writes: "+why)
	if f.Lease.Mine {
		d.Step.Kind = ReleaseLease
	}
	d.ResumeRefused = why
	return d
}
