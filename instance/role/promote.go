package role

import (
	"fmt"
)

// promote takes the role that the transition gives to this instance. The order is the safety argument:
// the handoff of a switchover, lease, then everything received is applied, then the others are compared, then
// the claim; writes are opened by resume, once the claim is stored.
func promote(f Facts, i Intent, t *Transition) Decision {
	m := f.MySQL
	if !m.SuperReadOnly {
		return do(Replica, Demote, "not strictly read-only before the promotion")
	}
	if f.ShuttingDown {
		return refuse(f, t, "its Pod is being stopped")
	}
	if f.Lease.Unwatched {
		return refuse(f, t, "its watchdog process does not run")
	}
	if i.Diverged {
		return refuse(f, t, "it holds transactions that the primary did not have")
	}
	if m.Replication != nil && m.Replication.SQLErrno != 0 {
		return refuse(f, t, fmt.Sprintf("its applier stopped with error %d: %s", m.Replication.SQLErrno, m.Replication.SQLError))
	}
	if f.SemiSync && m.SemiSync.SourceMissing {
		return refuse(f, t, "its commits would wait for no acknowledgement: "+notLoaded("source"))
	}
	if f.Refusal.ofAttempt(t.Attempt) {
		return refuse(f, t, f.Refusal.Why)
	}
	if t.Kind == Switchover && !f.Lease.handedOver(t.Attempt) {
		return awaitHandoff(f, i, t)
	}
	if d, due := takeLease(f, Replica); due {
		return d
	}
	if d, due := receiveHandoff(f, t); due {
		return d
	}
	if d, due := applyAll(f); due {
		return d
	}
	if f.Peers == nil || !f.Peers.SinceLease {
		return do(Replica, AskPeers, "comparing with what the other instances hold")
	}
	for _, p := range f.Peers.Answers {
		if p.Diverged {
			continue
		}
		if missing := p.Held.Minus(m.Executed); !missing.IsEmpty() {
			return refuse(f, t, fmt.Sprintf("%s holds %s that it does not: %s", p.Instance, transactions(missing), missing))
		}
	}
	// An applier that still runs has nothing more to apply. To stop it could take a minute: where the dead primary had
	// sent a part of a transaction, it waits that long for the rest.
	d := do(Replica, Claim, fmt.Sprintf("claiming generation %d", t.Generation))
	d.Step.Executed, d.Step.Attempt = &m.Executed, t.Attempt
	return d
}

// awaitHandoff waits while the old primary still holds its lease. One that let it go in any other way than by
// handing over has not said what it had executed: the operator then decides anew, on what is known.
func awaitHandoff(f Facts, i Intent, t *Transition) Decision {
	if f.Lease.Holder != "" && !f.Lease.Mine && !f.Lease.Expired {
		return wait(Replica, t.From+" has not handed over yet")
	}
	if !i.Live {
		return do(Replica, Confirm, "reading the Lease once more")
	}
	return refuse(f, t, fmt.Sprintf("%s gave up its lease without a handoff for this switchover", t.From))
}

// receiveHandoff waits, in a switchover, for everything that the old primary had executed when it had
// become read-only. The receiver runs until then; a failover has no handoff, and stops it at once.
func receiveHandoff(f Facts, t *Transition) (Decision, bool) {
	m := f.MySQL
	if t.Kind == Switchover {
		if missing := f.Lease.Handoff.Minus(m.Held()); !missing.IsEmpty() {
			return receive(f, fmt.Sprintf("receiving the last %s of %s", transactions(missing), t.From)), true
		}
	}
	if m.Replication != nil && m.Replication.IORunning {
		return do(Replica, StopReceiver, "nothing more is to be received"), true
	}
	return Decision{}, false
}

// receive keeps both threads running while something is still to come.
func receive(f Facts, why string) Decision {
	if r := f.MySQL.Replication; r != nil && !r.IORunning && (r.IOErrno == 0 || f.RetryDue) {
		return do(Replica, StartReplica, why)
	}
	return wait(Replica, why)
}

// applyAll waits until everything received is executed.
func applyAll(f Facts) (Decision, bool) {
	rest := f.MySQL.Unapplied()
	if rest.IsEmpty() {
		return Decision{}, false
	}
	if d, due := committing(f); due {
		return d, true
	}
	why := fmt.Sprintf("applying the last %s", transactions(rest))
	if !f.MySQL.Replication.SQLRunning {
		return do(Replica, StartApplier, why), true
	}
	return wait(Replica, why), true
}

// refuse says why the role is not taken, and gives the lease back: another instance may need it.
func refuse(f Facts, t *Transition, why string) Decision {
	d := wait(Replica, "cannot be promoted: "+why)
	if f.Lease.Mine {
		d.Step.Kind = ReleaseLease
	}
	d.PromotionRefused, d.PromotionRefusedAttempt = why, t.Attempt
	return d
}

// stepDown gives the role up to the target of a transition: read-only first, then the handoff.
func stepDown(f Facts, t *Transition) Decision {
	if f.MySQL.Writable() || !f.MySQL.SuperReadOnly {
		return do(Replica, Demote, "stepping down for "+t.To)
	}
	if f.Lease.Mine {
		d := do(Replica, ReleaseLease, "handing over to "+t.To)
		d.Step.Executed, d.Step.Attempt = &f.MySQL.Executed, t.Attempt
		return d
	}
	return standBy(f, fmt.Sprintf("stepped down; %s is to take the role", t.To))
}
