package role

import (
	"fmt"

	"cnmsql.co/operator/instance/gtid"
)

// Decide returns the one step that is due.
func Decide(f Facts, i Intent) Decision {
	if !i.Known || !f.Lease.Known {
		return unaware(f)
	}
	if d, speaks := guard(f, i); speaks {
		return d
	}
	switch {
	case i.Fenced:
		return fenced(f, i)
	case f.ServerHeld && i.FenceAsked:
		return wait(None, "a fence is asked for; the server stays stopped")
	case f.ServerHeld && !f.ShuttingDown:
		return do(None, StartServer, "not fenced any more")
	case !f.ServerRunning || f.MySQL == nil:
		return wait(None, "the server is not running")
	}
	t := i.pending()
	switch {
	case t != nil && t.To == f.Instance:
		return promote(f, i, t)
	case t != nil && i.CurrentPrimary == f.Instance:
		return stepDown(f, t)
	case t != nil:
		return standBy(f, fmt.Sprintf("the primary is being changed from %q to %q", t.From, t.To))
	case i.CurrentPrimary == f.Instance:
		return resume(f, i)
	case i.CurrentPrimary == "":
		return standBy(f, "there is no primary yet")
	default:
		return follow(f, i)
	}
}

// unaware is an instance that has not seen the Cluster or the Lease since its manager started.
func unaware(f Facts) Decision {
	if f.MySQL.Writable() {
		return do(None, Demote, "writable without knowing the Cluster")
	}
	return wait(None, "the Cluster and its Lease were not read yet")
}

// guard holds what goes before every role: nobody writes who may not, and nobody keeps a lease it has no use for.
func guard(f Facts, i Intent) (Decision, bool) {
	t := i.pending()
	current := i.CurrentPrimary == f.Instance
	target := t != nil && t.To == f.Instance
	if f.MySQL.Writable() {
		switch {
		case f.StepDownDue:
			return do(Replica, Demote, "the Pod is being stopped"), true
		case !current:
			return do(Replica, Demote, "writable without being the primary"), true
		case !f.Lease.held():
			return do(Replica, Demote, "writable without holding the primary lease"), true
		case f.Lease.Unwatched:
			return do(Replica, Demote, "writable without a watchdog process"), true
		}
		return Decision{}, false
	}
	if !f.Lease.Mine {
		return Decision{}, false
	}
	readOnly := f.ServerGone || (f.MySQL != nil && f.MySQL.SuperReadOnly)
	switch {
	case !readOnly:
		return Decision{}, false
	case f.ServerGone:
		return do(None, ReleaseLease, "the server is down, so nobody writes here"), true
	case f.StepDownDue:
		return handOver(f, i, "the Pod is being stopped"), true
	case current || target:
		return Decision{}, false
	}
	return do(Replica, ReleaseLease, "the lease is held by an instance that is not to be primary"), true
}

// standBy keeps a server as it is, read-only, with its relay log untouched.
func standBy(f Facts, why string) Decision {
	if !f.MySQL.SuperReadOnly {
		return do(Replica, Demote, "not strictly read-only without being the primary")
	}
	// What was received must be applied whoever becomes the primary.
	if r := f.MySQL.Replication; r != nil && r.SQLErrno == 0 && !f.MySQL.Unapplied().IsEmpty() {
		if d, due := committing(f); due {
			return d
		}
		if !r.SQLRunning {
			return do(Replica, StartApplier, "applying what was received")
		}
	}
	return wait(Replica, why)
}

func do(role string, kind StepKind, why string) Decision {
	return Decision{Step: Step{Kind: kind}, Role: role, Why: why}
}

func wait(role, why string) Decision {
	return Decision{Step: Step{Kind: Wait}, Role: role, Why: why}
}

func rest(role, why string) Decision {
	return Decision{Step: Step{Kind: Rest}, Role: role, Why: why}
}

// takeLease returns the step towards holding the lease, or false when it is held.
func takeLease(f Facts, role string) (Decision, bool) {
	l := f.Lease
	switch {
	case l.held():
		return Decision{}, false
	case l.PromisedTo != "":
		return wait(role, "it has vouched for "+l.PromisedTo+" and takes the primary lease only when that promise has ended"), true
	case l.Holder == "" || l.Mine || l.Expired:
		return do(role, AcquireLease, "taking the primary lease"), true
	}
	return wait(role, fmt.Sprintf("the primary lease is held by %s until it is released or expires", l.Holder)), true
}

// transactions says how many transactions a set holds.
func transactions(s gtid.Set) string {
	if n := s.Count(); n != 1 {
		return fmt.Sprintf("%d transactions", n)
	}
	return "1 transaction"
}
