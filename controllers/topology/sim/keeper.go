package sim

import (
	"strconv"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/lease"
	"cnmsql.co/operator/instance/role"
)

// fenceDrain is how long client transactions may finish in a fence.
const fenceDrain = 500 * time.Millisecond

// keeper carries out what the shipped rules of the lease say for one manager.
type keeper struct {
	m     *manager
	state lease.State
	seen  *leaseObject
	timer int

	// calling tells that a call which writes is under way, queue what waits for its end.
	calling bool
	queue   []func()
	asking  bool
	// fence counts the fences, so that a later one ends the tries of an earlier.
	fence int
}

func (k *keeper) w() *World { return k.m.w }

// saw takes a version of the Lease unless a newer one is known.
func (k *keeper) saw(l *leaseObject) {
	if k.seen != nil && l.version <= k.seen.version {
		return
	}
	silent := k.seen != nil && k.seen.holder == l.holder && k.seen.handoffAttempt == l.handoffAttempt
	k.seen = l
	k.state = k.state.Observe(k.m.now(), record(l))
	k.tick()
	if !silent {
		k.m.wake()
	}
}

func record(l *leaseObject) lease.Record {
	return lease.Record{Version: strconv.Itoa(l.version), Holder: l.holder, TTL: api.PrimaryLeaseTTL}
}

func (k *keeper) facts() role.LeaseFacts {
	if k.seen == nil {
		return role.LeaseFacts{}
	}
	now := k.m.now()
	holder := k.seen.holder
	return role.LeaseFacts{
		Known: true, Holder: holder, Mine: k.state.Mine(), InForce: k.state.InForce(now),
		Expired: holder != "" && k.w().rules.expired(k, now),
		Handoff: k.seen.handoff, HandoffAttempt: k.seen.handoffAttempt,
	}
}

// tick does what is due and comes again when something else is.
func (k *keeper) tick() {
	now := k.m.now()
	d := k.state.Due(now)
	if d.Kill {
		k.m.say("kills mysqld: it was not seen to be read-only in time")
		k.m.killServer()
		k.state = k.state.Harmless()
	}
	if d.Fence && !k.w().rules.NoFence {
		k.begin(d.Why)
	}
	if d.Renew && !k.calling {
		k.renew()
	}
	if d.Vouch && !k.asking && k.w().rules.Vouch {
		k.vouch()
	}
	k.arm()
	k.timer++
	timer := k.timer
	next := k.state.Due(now).Next
	if next == lease.Never {
		return
	}
	k.w().later(k.m.p, min(max(next-now, time.Millisecond), 30*time.Second), func() {
		if k.timer == timer {
			k.tick()
		}
	})
}

// arm tells the watchdog until when the server may run.
func (k *keeper) arm() {
	by, due := k.state.KillBy()
	k.w().inst[k.m.n].arm(by, due)
}

// write changes the Lease as last seen with one conditional update; seen is then what the answer says.
func (k *keeper) write(change func(*leaseObject), done func(stored *leaseObject, conflict, answered bool)) {
	w, m := k.w(), k.m
	next := *k.seen
	read := k.seen.version
	change(&next)
	next.renewTime = w.date(m.p)
	var stored, present *leaseObject
	conflict := false
	w.call(m.p, m.n, w.net.api, nil, w.rules.Times.Call, func() bool {
		stored, present, conflict = nil, nil, false
		if l, ok := w.api.putLease(next, read); ok {
			stored = l
		} else {
			conflict, present = true, w.api.lease
		}
		return true
	}, func(ok bool) {
		if ok && conflict {
			k.saw(present)
		}
		done(stored, ok && conflict, ok)
	})
}

// recordReassert notes on the Lease that a server is opened again that somebody else closed.
func (k *keeper) recordReassert(done func(bool)) {
	k.enter(func() {
		k.write(func(l *leaseObject) { l.reasserted = k.w().date(k.m.p) }, func(stored *leaseObject, _, _ bool) {
			if stored != nil {
				k.took(stored, func(s lease.State) lease.State { return s })
			}
			k.leave()
			done(stored != nil)
		})
	})
}

// enter lets one writing call through at a time.
func (k *keeper) enter(do func()) {
	if k.calling {
		k.queue = append(k.queue, do)
		return
	}
	k.calling = true
	do()
}

func (k *keeper) leave() {
	k.calling = false
	if len(k.queue) > 0 {
		next := k.queue[0]
		k.queue = k.queue[1:]
		k.calling = true
		next()
		return
	}
	k.tick()
}

// took takes the answer to an own update.
func (k *keeper) took(l *leaseObject, change func(lease.State) lease.State) {
	if l.version < k.seen.version && l.holder != k.seen.holder {
		return
	}
	if l.version > k.seen.version {
		k.seen = l
		k.state = k.state.Observe(k.m.now(), record(l))
	}
	k.state = change(k.state)
	k.arm()
}

func (k *keeper) acquire(done func(bool)) {
	k.enter(func() {
		now := k.m.now()
		if k.seen == nil || !k.state.MayAcquire(now) && !k.w().rules.expired(k, now) {
			k.leave()
			done(false)
			return
		}
		started := now
		k.write(func(l *leaseObject) {
			l.holder = k.identity()
			l.transitions++
		}, func(stored *leaseObject, _, _ bool) {
			if stored != nil {
				k.took(stored, func(s lease.State) lease.State { return s.Acquired(started, k.m.now()) })
			}
			k.leave()
			done(stored != nil && k.state.Holding())
		})
	})
}

func (k *keeper) identity() string { return api.LeaseHolder(k.m.me(), k.w().inst[k.m.n].uid) }

func (k *keeper) release(executed *gtid.Set, attempt string, done func(bool)) {
	k.enter(func() {
		k.state = k.state.Releasing()
		k.arm()
		k.tryRelease(executed, attempt, func(ok bool) {
			k.leave()
			done(ok)
		})
	})
}

func (k *keeper) tryRelease(executed *gtid.Set, attempt string, done func(bool)) {
	if !k.state.Mine() {
		done(true)
		return
	}
	k.write(func(l *leaseObject) {
		l.holder = ""
		if executed != nil {
			l.handoff, l.handoffAttempt = executed, attempt
		}
	}, func(stored *leaseObject, conflict, _ bool) {
		switch {
		case stored != nil:
			k.took(stored, lease.State.Released)
			done(true)
		case conflict:
			k.tryRelease(executed, attempt, done)
		default:
			done(false)
		}
	})
}

// renew is one renewal, with a second try at once after a conflict.
func (k *keeper) renew() {
	k.enter(func() { k.tryRenew(0) })
}

func (k *keeper) tryRenew(try int) {
	started := k.m.now()
	if !k.state.Holding() || try == 2 {
		k.state = k.state.NotRenewed(started)
		k.leave()
		return
	}
	k.write(func(l *leaseObject) { l.renewals++ }, func(stored *leaseObject, conflict, _ bool) {
		switch {
		case stored != nil:
			k.took(stored, func(s lease.State) lease.State { return s.Renewed(started) })
			k.leave()
		case conflict:
			k.tryRenew(try + 1)
		default:
			k.m.say("cannot renew the lease")
			k.state = k.state.NotRenewed(started)
			k.leave()
		}
	})
}

// begin starts a fence: tries until the server is read-only or gone, or is killed.
func (k *keeper) begin(why string) {
	k.m.say("fences its server: %s", why)
	k.state = k.state.FenceBegun(k.m.now())
	k.fence++
	k.tryFence(k.fence)
	k.m.wake()
}

func (k *keeper) tryFence(fence int) {
	if k.fence != fence {
		return
	}
	if !k.m.srv().p.alive {
		k.state = k.state.Harmless()
		k.tick()
		return
	}
	k.m.demote(fenceDrain, 5*time.Second, func(ok bool) {
		switch {
		case k.fence != fence:
		case ok:
			k.m.srv().offline = false
			k.state = k.state.Harmless()
			k.tick()
			k.m.wake()
		default:
			k.w().later(k.m.p, 200*time.Millisecond, func() { k.tryFence(fence) })
		}
	})
}
