package agent

import (
	"context"
	"sync"
	"time"
)

// Fencer makes sure that the server takes no writes.
type Fencer interface {
	// Demote makes the server read-only, ends client sessions after drain, and returns nil only when it read
	// back that the server is read-only.
	Demote(ctx context.Context, drain time.Duration) error
	// Gone tells that no server process exists.
	Gone() bool
	// Kill ends the server at once, without a shutdown.
	Kill()
}

const (
	// fenceDrain is how long client transactions may finish by themselves in a fence.
	fenceDrain = 500 * time.Millisecond
	// lostBound is how long a server may take to become read-only after another holder was seen, while the
	// own deadline has not passed: the lease was changed by hand.
	lostBound = 3 * time.Second
	// clockCheck is how often the deadline is compared with the clock. A timer alone would sleep through a
	// suspension of the machine.
	clockCheck = 250 * time.Millisecond
	fenceRetry = 200 * time.Millisecond
)

// Run renews the lease while it is held, and fences the server when it cannot be renewed, until ctx ends. The
// two never wait for each other.
func (k *Keeper) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { k.renewals(ctx) })
	group.Go(func() { k.guard(ctx) })
	group.Wait()
	return nil
}

func (k *Keeper) renewals(ctx context.Context) {
	for {
		wait, holding := k.untilRenewal()
		if !holding {
			select {
			case <-ctx.Done():
				return
			case <-k.due:
			}
			continue
		}
		if sleep(ctx, wait); ctx.Err() != nil {
			return
		}
		k.renewOnce(ctx)
	}
}

// renewOnce is one renewal with what is to be said about it.
func (k *Keeper) renewOnce(ctx context.Context) {
	started := k.clock.Now()
	err := k.renew(ctx)
	if ctx.Err() != nil {
		return
	}
	k.mu.Lock()
	was := k.failing
	k.failing, k.tried = err != nil, started
	k.mu.Unlock()
	switch {
	case err != nil && !was:
		k.log.Info("cannot renew the primary lease", "error", err.Error())
	case err == nil && was:
		k.log.Info("renewing the primary lease again")
		k.changed()
	}
}

// untilRenewal counts from the start of the last success, after a failure from the start of that: a call that
// has timed out is tried again at once.
func (k *Keeper) untilRenewal() (wait time.Duration, holding bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	next := k.renewed + renewEvery
	if k.failing {
		next = max(next, k.tried+renewRetry)
	}
	return max(0, next-k.clock.Now()), k.holding
}

// guard fences once per missed deadline or lost lease.
func (k *Keeper) guard(ctx context.Context) {
	handled := time.Duration(-1)
	for {
		d := k.danger()
		if d.due && d.since != handled {
			k.fence(ctx, d)
			handled = d.since
			continue
		}
		var tick <-chan time.Time
		if d.armed {
			tick = time.After(min(clockCheck, max(time.Millisecond, d.in)))
		}
		select {
		case <-ctx.Done():
			return
		case <-k.urgent:
		case <-tick:
		}
	}
}

// danger is the state of the deadline at one moment.
type danger struct {
	armed bool          // there is a deadline to watch
	due   bool          // it has passed, or the lease is lost
	in    time.Duration // until it passes
	since time.Duration // the renewal that it counts from: which danger this is
	kill  time.Duration // when the server must be read-only or dead
	why   string
}

func (k *Keeper) danger() danger {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	d := danger{since: k.renewed, kill: k.renewed + killAfter}
	switch {
	case k.lost:
		d.due, d.why = true, "another instance holds the primary lease"
		d.kill = min(d.kill, now+lostBound)
	case k.holding && now >= k.renewed+fenceAfter:
		d.due, d.armed, d.in, d.why = true, true, clockCheck, "the primary lease could not be renewed"
	case k.holding:
		d.armed, d.in = true, k.renewed+fenceAfter-now
	}
	return d
}

// fence makes the server read-only, and kills it when that is not confirmed in time.
func (k *Keeper) fence(ctx context.Context, d danger) {
	k.mu.Lock()
	if !k.lost {
		k.fenced, k.fencedAt = true, k.clock.Now()
	}
	k.lost = false
	k.mu.Unlock()
	k.log.Info("fencing the server", "reason", d.why)
	k.changed()
	if k.demote(ctx, d.kill) {
		k.log.Info("the server is read-only")
	} else {
		k.log.Info("killing the server: it was not confirmed to be read-only in time")
		k.fencer.Kill()
	}
	k.changed()
}

// demote tries until the server is confirmed to be read-only or gone, and gives up at the given time of the
// clock, whether or not the server answers by then.
func (k *Keeper) demote(ctx context.Context, until time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), until-k.clock.Now())
	defer cancel()
	confirmed := make(chan struct{})
	go func() {
		for ctx.Err() == nil {
			if k.fencer.Gone() || k.fencer.Demote(ctx, fenceDrain) == nil {
				close(confirmed)
				return
			}
			sleep(ctx, fenceRetry)
		}
	}()
	for k.clock.Now() < until {
		select {
		case <-confirmed:
			return true
		case <-time.After(min(clockCheck, max(time.Millisecond, until-k.clock.Now()))):
		}
	}
	return false
}
