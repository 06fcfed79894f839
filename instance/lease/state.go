package lease

import (
	"math"
	"time"
)

// Never is a wait that no passing of time ends.
const Never = time.Duration(math.MaxInt64)

// Record is the Lease as read, as far as it decides anything.
type Record struct {
	// Version changes with each write of the object.
	Version string
	// Holder is who holds it, see api.LeaseHolder; empty when it was given back.
	Holder string
	// TTL is the duration that the object names. A shorter one than Times.TTL changes nothing.
	TTL time.Duration
}

// State is what one instance's manager knows of the lease and of its own part in it.
type State struct {
	times Times
	me    string

	known  bool
	record Record
	since  time.Duration // when record's version was first seen

	holding  bool          // acquired by this process, and neither given back nor lost
	acquired time.Duration // end of the acquisition
	renewed  time.Duration // start of the last renewal, or acquisition, that succeeded
	tried    time.Duration // start of the last renewal
	failing  bool          // that one failed
	vouched  time.Duration // start of the last unanimous round
	asked    time.Duration // start of the last round
	doubted  bool          // that one was not unanimous

	lost     Loss          // why the lease is not this process's any more, until the fence for it begins
	fencing  bool          // a fence has begun and the server is not known to be harmless yet
	fencedOf time.Duration // the confirmation after which the last fence for a missed deadline began
	killBy   time.Duration // when a server that is being fenced is killed
	fenced   bool          // the last fence was for a missed deadline, and nothing was confirmed since
	fencedAt time.Duration // when it began

	promised   string // whom this instance vouched for last
	promisedAt time.Duration
}

// Loss is why a lease was lost.
type Loss string

// The losses.
const (
	// LostToAnother: the object names another holder.
	LostToAnother Loss = "another instance holds the primary lease"
	// LostGeneration: an instance knows of a later generation with another primary.
	LostGeneration Loss = "another instance is the primary in a later generation"
)

// MissedDeadline is why a server is fenced whose manager nothing has confirmed in time.
const MissedDeadline = "the primary lease could not be renewed"

// New is the state of a manager that has just started, of the Pod with this identity.
func New(me string, times Times) State { return State{times: times, me: me, fencedOf: -1} }

// Observe takes the Lease as it was read at now. The caller has made sure that it is not older than the one
// that this state has.
func (s State) Observe(now time.Duration, r Record) State {
	if s.known && r.Version == s.record.Version {
		return s
	}
	if s.known && r.Holder == "" && s.record.Holder != "" && s.record.Holder == s.promised {
		s.promised = ""
	}
	s.known, s.record, s.since = true, r, now
	if r.Holder != s.me {
		if s.holding {
			s.holding, s.lost = false, LostToAnother
		}
		s.fenced = false
	}
	return s
}

// Acquired tells that the call which was started then has ended now and taken the lease. The caller asked
// MayAcquire before, about the very version that the call was conditional on. So a call that gets through late
// does no harm: the holder of that version was out, and could only have come back by another one.
func (s State) Acquired(started, now time.Duration) State {
	if !s.holding {
		s.acquired = now
	}
	s.holding, s.lost = true, ""
	s.renewed, s.vouched, s.failing, s.doubted = started, started, false, false
	s.tried, s.asked = started, started
	s.fenced = false
	return s
}

// Renewed tells that the renewal which was started then got through.
func (s State) Renewed(started time.Duration) State {
	if !s.holding {
		return s
	}
	s.renewed, s.tried = max(s.renewed, started), max(s.tried, started)
	s.failing, s.fenced = false, false
	return s
}

// NotRenewed tells that the renewal which was started then failed, or is not known to have got through.
func (s State) NotRenewed(started time.Duration) State {
	s.tried, s.failing = max(s.tried, started), true
	return s
}

// Releasing tells that the lease is about to be given back: the server is known to take no writes. It is not
// held from here on, whatever comes of the call.
func (s State) Releasing() State {
	s.holding, s.lost, s.fencing = false, "", false
	return s
}

// Released tells that it was given back.
func (s State) Released() State {
	s.fenced = false
	return s.Releasing()
}

// Record is the Lease as last seen; false when it never was.
func (s State) Record() (Record, bool) { return s.record, s.known }

// Mine tells that the object names this very Pod.
func (s State) Mine() bool { return s.known && s.record.Holder == s.me }

// Holding tells that this process acquired the lease, has not given it back and has not seen it lost.
func (s State) Holding() bool { return s.holding }

// AcquiredAt is the end of the acquisition of the lease that is held; false when none is.
func (s State) AcquiredAt() (time.Duration, bool) { return s.acquired, s.holding }

// RenewedAt is the start of the last renewal that succeeded; false when no lease is held.
func (s State) RenewedAt() (time.Duration, bool) { return s.renewed, s.holding }

// Confirmed is the start of the last renewal or unanimous round: what all deadlines count from.
func (s State) Confirmed() time.Duration { return max(s.renewed, s.vouched) }

// Vouched tells that the lease is in force by the others' word alone.
func (s State) Vouched(now time.Duration) bool {
	return s.InForce(now) && now >= s.renewed+s.times.Fence
}

// InForce tells that this process holds the lease and its server may be writable.
func (s State) InForce(now time.Duration) bool { return s.Remaining(now) > 0 }

// Remaining is how long it stays so without another confirmation; 0 when it is not.
func (s State) Remaining(now time.Duration) time.Duration {
	if !s.holding || s.fencing || s.fencedOf == s.Confirmed() {
		return 0
	}
	return max(0, s.Confirmed()+s.times.Fence-now)
}

// Fenced is for how long a server has been fenced whose manager was not confirmed in time; false when it is
// not, or when the role has gone to another.
func (s State) Fenced(now time.Duration) (time.Duration, bool) { return now - s.fencedAt, s.fenced }

// UntilExpiry is how long another's lease must still be watched before it has expired; 0 when it has, Never
// when nobody else is known to hold it.
func (s State) UntilExpiry(now time.Duration) time.Duration {
	if !s.known || s.record.Holder == "" || s.record.Holder == s.me {
		return Never
	}
	return max(0, s.since+max(s.times.TTL, s.record.TTL)-now)
}

// UntilAcquirable is how long this instance must still wait before it may take the lease: 0 when it may now,
// Never when it has not seen the object.
func (s State) UntilAcquirable(now time.Duration) time.Duration {
	_, promised := s.Promised(now)
	switch {
	case !s.known:
		return Never
	case s.record.Holder == "" || s.record.Holder == s.me:
		return promised
	}
	return max(promised, s.UntilExpiry(now))
}

// MayAcquire tells that this instance may take the lease now.
func (s State) MayAcquire(now time.Duration) bool { return s.UntilAcquirable(now) == 0 }
