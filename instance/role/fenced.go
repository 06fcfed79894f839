package role

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
	case f.ServerStarting:
		// It takes no writes before it is opened.
		return do(None, StopServer, "fenced")
	case f.ServerHangs:
		return do(None, KillServer, "fenced, and the server does not answer")
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
		if !f.Peers.hold(f) {
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

// hold tells that somebody who answers has all that this server has executed, or that nobody else answers.
func (p *Peers) hold(f Facts) bool {
	for _, a := range p.Answers {
		if a.Held.Contains(f.MySQL.Executed) {
			return true
		}
	}
	return len(p.Answers) == 0 && len(p.Silent) == 0
}
