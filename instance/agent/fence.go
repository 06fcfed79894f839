package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	"cnmsql.co/operator/instance/lease"
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
	// clockCheck is how often the deadline is compared with the clock. A timer alone would sleep through a
	// suspension of the machine.
	clockCheck = 250 * time.Millisecond
	fenceRetry = 200 * time.Millisecond
)

// Run renews the lease while it is held, asks the others when it cannot be renewed, and fences the server when
// nothing has confirmed it, until ctx ends. The three never wait for each other.
func (k *Keeper) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { k.renewals(ctx) })
	group.Go(func() { k.guard(ctx) })
	if k.vouching() {
		group.Go(func() { k.rounds(ctx) })
	}
	group.Wait()
	return nil
}

func (k *Keeper) renewals(ctx context.Context) {
	for {
		s, now := k.look()
		if !s.Holding() {
			select {
			case <-ctx.Done():
				return
			case <-k.due:
			}
			continue
		}
		if sleep(ctx, max(0, s.RenewalAt()-now)); ctx.Err() != nil {
			return
		}
		k.renewOnce(ctx)
	}
}

// renewOnce is one renewal with what is to be said about it.
func (k *Keeper) renewOnce(ctx context.Context) {
	started := k.o.Clock.Now()
	err := k.renew(ctx)
	if ctx.Err() != nil || errors.Is(err, errNotMine) {
		return
	}
	k.mu.Lock()
	was := k.failing
	k.failing = err != nil
	if err != nil {
		k.change(k.state.NotRenewed(started))
	}
	k.mu.Unlock()
	switch {
	case err != nil && !was:
		k.log.Info("cannot renew the primary lease", "error", err.Error())
	case err == nil && was:
		k.log.Info("renewing the primary lease again")
		k.o.Changed()
	}
}

// guard begins each fence that is due and kills the server that is not harmless in time. It waits for neither.
func (k *Keeper) guard(ctx context.Context) {
	var tries sync.WaitGroup
	defer tries.Wait()
	var confirmed <-chan struct{}
	end := func() {}
	defer func() { end() }()
	for ctx.Err() == nil {
		s, now := k.look()
		d := s.Due(now)
		switch {
		case d.Kill:
			k.log.Info("killing the server: it was not confirmed to be read-only in time")
			end()
			k.o.Fencer.Kill()
			k.harmless()
			continue
		case d.Fence:
			end()
			confirmed, end = k.fence(ctx, d.Why, &tries)
			continue
		}
		var tick <-chan time.Time
		if s.Holding() || d.Next != lease.Never {
			tick = time.After(k.await(d.Next))
		}
		select {
		case <-ctx.Done():
		case <-k.urgent:
		case <-tick:
		case <-confirmed:
			confirmed = nil
			k.log.Info("the server is read-only")
			k.harmless()
		}
	}
}

func (k *Keeper) harmless() {
	k.with(func(s lease.State, _ time.Duration) lease.State { return s.Harmless() })
	k.o.Changed()
}

// fence begins to make the server read-only. The channel is closed when that is confirmed; the function gives
// it up.
func (k *Keeper) fence(ctx context.Context, why string, tries *sync.WaitGroup) (<-chan struct{}, func()) {
	k.with(func(s lease.State, now time.Duration) lease.State {
		k.fences++
		return s.FenceBegun(now)
	})
	k.log.Info("fencing the server", "reason", why)
	k.o.Changed()
	ctx, cancel := context.WithCancel(ctx)
	confirmed := make(chan struct{})
	tries.Go(func() {
		for ctx.Err() == nil {
			if k.o.Fencer.Gone() || k.o.Fencer.Demote(ctx, fenceDrain) == nil {
				close(confirmed)
				return
			}
			sleep(ctx, fenceRetry)
		}
	})
	return confirmed, cancel
}
