package lease

import "time"

// Due is what has to be done now.
type Due struct {
	// Renew and Vouch are calls to begin: one of each at a time, and neither waits for the other.
	Renew, Vouch bool
	// Fence is a fence to begin now; Why is its reason. Kill is a server to kill now.
	Fence, Kill bool
	Why         string
	// Next is when something else becomes due, if nothing happens before; Never when nothing will.
	Next time.Duration
}

// Due is what has to be done now, and when to look next. What is due stays due until the caller tells what
// came of it: Renewed or NotRenewed, Agreed, Doubted or Displaced, FenceBegun, Harmless.
func (s State) Due(now time.Duration) Due {
	d := Due{Next: Never}
	at := func(moment time.Duration, due *bool) {
		if now >= moment {
			*due = true
		} else {
			d.Next = min(d.Next, moment)
		}
	}
	if s.fencing {
		at(s.killBy, &d.Kill)
	}
	if s.lost != "" {
		d.Fence, d.Why = true, string(s.lost)
	}
	if !s.holding {
		return d
	}
	at(s.RenewalAt(), &d.Renew)
	if s.fencedOf == s.Confirmed() {
		return d
	}
	at(s.Confirmed()+s.times.Fence, &d.Fence)
	if d.Fence {
		d.Why = MissedDeadline
		return d
	}
	at(s.VouchAt(), &d.Vouch)
	return d
}

// RenewalAt is when the next renewal is due: after the last success, after a failure soon. A call that has
// timed out is tried again at once.
func (s State) RenewalAt() time.Duration {
	at := s.renewed + s.times.Renew
	if s.failing {
		at = max(at, s.tried+s.times.RenewRetry)
	}
	return at
}

// VouchAt is when the others are asked next to vouch.
func (s State) VouchAt() time.Duration {
	at := s.renewed + s.times.VouchFrom
	if s.vouched > s.renewed {
		at = max(at, s.vouched+s.times.VouchEvery)
	}
	if s.doubted {
		at = max(at, s.asked+s.times.VouchRetry)
	}
	return at
}

// FenceBegun tells that the server is being made read-only from now on.
func (s State) FenceBegun(now time.Duration) State {
	s.fencing, s.killBy = true, s.Confirmed()+s.times.Kill
	if s.lost != "" {
		s.killBy = min(s.killBy, now+s.times.LostKill)
		s.lost, s.fenced = "", false
		return s
	}
	s.fencedOf = s.Confirmed()
	s.fenced, s.fencedAt = true, now
	return s
}

// Harmless tells that the server was seen to be read-only or gone after the fence began, or was killed.
func (s State) Harmless() State {
	s.fencing = false
	return s
}

// KillBy is when a server whose manager does not move is to be killed by somebody else; false while there is
// nothing to fear from it.
func (s State) KillBy() (time.Duration, bool) {
	switch {
	case s.fencing:
		return s.killBy, true
	case s.lost != "", s.holding && s.fencedOf != s.Confirmed():
		return s.Confirmed() + s.times.Kill, true
	}
	return 0, false
}
