package role

import "cnmsql.co/operator/instance/gtid"

// fenced takes an instance out of service: nobody writes, the lease goes, then the server stops and is kept so. The
// manager lives on, and the data stay as they are.
//
// A server that has stopped sends nothing more. So one that was the primary waits, for a bounded time, until a replica
// holds everything, after it has become read-only: only then is a clean stop safe, too, which would answer clients
// whose commits nobody has acknowledged.
func fenced(f Facts, i Intent) Decision {
	switch {
	case f.ServerGone && f.ServerHeld:
		return rest(None, "fenced: the server is stopped")
	case f.ServerGone:
		return do(None, StopServer, "fenced")
	case f.ServerHeld:
		return wait(None, "fenced: the server is being stopped")
	case f.ServerStarting && f.Lease.Mine:
		// Recovery may take long, and until the lease is given back nobody can take the role.
		return do(None, KillServer, "fenced, and the lease has still to be given back")
	case f.ServerStarting:
		// It takes no writes before it is opened.
		return do(None, StopServer, "fenced")
	case f.ServerStuck:
		// Asked to end, it would answer clients whose commits nobody has acknowledged.
		return do(None, KillServer, "fenced, and the server neither answers nor becomes read-only")
	case !f.ServerRunning || f.MySQL == nil:
		return wait(None, "fenced: waiting for the server's answer")
	case !f.MySQL.SuperReadOnly:
		return do(Replica, Demote, "fenced")
	case f.Lease.Mine:
		return handOver(f, i, "fenced")
	case i.CurrentPrimary == f.Instance && !f.HandoverOverdue:
		if f.Peers == nil {
			return do(Replica, AskPeers, "looking for a replica that holds everything")
		}
		if !somebodyHolds(f.Peers, f.MySQL.Executed) {
			return wait(Replica, "fenced: waiting until a replica holds everything")
		}
	}
	return do(Replica, StopServer, "fenced")
}

// handOver gives the lease back with what the server has executed, which is read-only for good.
func handOver(f Facts, i Intent, why string) Decision {
	d := do(Replica, ReleaseLease, why)
	d.Step.Executed = &f.MySQL.Executed
	if t := i.pending(); t != nil && i.CurrentPrimary == f.Instance {
		// The target of a switchover waits for the handoff of this very attempt.
		d.Step.Attempt = t.Attempt
	}
	return d
}

// somebodyHolds tells that one of the others has all that this server has executed, or that there are no others.
func somebodyHolds(p *Peers, executed gtid.Set) bool {
	for _, a := range p.Answers {
		if a.Held.Contains(executed) {
			return true
		}
	}
	return len(p.Answers) == 0 && len(p.Silent) == 0
}

// HandingOver tells that a fenced primary has given everything back but its server: the time runs in which it waits for
// a replica that holds everything.
func HandingOver(f Facts, i Intent) bool {
	return i.Fenced && i.CurrentPrimary == f.Instance && f.ServerRunning && f.MySQL != nil && f.MySQL.SuperReadOnly && !f.Lease.Mine
}

// Unclosed tells that a fenced server is not known to be read-only yet.
func Unclosed(f Facts, i Intent) bool {
	return i.Fenced && !f.ServerGone && !f.ServerStarting && !f.ServerHeld && (f.MySQL == nil || !f.MySQL.SuperReadOnly)
}
