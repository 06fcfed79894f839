package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"cnmsql.co/operator/e2e/framework"
)

const (
	// calm is for how long writes must have been acknowledged, with no pause above calmPause, before a run
	// begins and before it counts as over.
	calm      = 2 * time.Second
	calmPause = 500 * time.Millisecond
	// calmWithin is how long that may take.
	calmWithin = 2 * time.Minute
)

// result are the longest pauses of one run.
type result struct {
	service, direct time.Duration
	// trace is what happened meanwhile, if that is wanted, and since when no server acknowledged anything.
	trace *timeline
	since time.Time
}

// measure disturbs a side once while the writers write, and holds every instance to their ledgers.
func (b *bench) measure(ctx context.Context, s *side, name string) (result, error) {
	how := s.ways[name]
	if err := prepare(ctx, s, how); err != nil {
		return result{}, err
	}
	t := newTimeline(b.trace)
	w, err := startWriters(ctx, s, t)
	if err != nil {
		return result{}, err
	}
	defer w.stop()
	observing, stop := context.WithCancel(ctx)
	defer stop()
	if b.trace {
		// Before the wait for calm: the watches have told of how all is when the disturbance begins.
		if err := s.observe(observing, t); err != nil {
			return result{}, err
		}
	}
	if err := w.awaitCalm(ctx); err != nil {
		return result{}, err
	}
	begin := time.Now()
	if err := disturb(ctx, s, name, t, w); err != nil {
		return result{}, err
	}
	if err := errors.Join(s.settle(ctx), w.awaitCalm(ctx)); err != nil {
		return result{}, err
	}
	end := time.Now()
	w.stop()
	stop()
	r := result{trace: t}
	if w.service != nil {
		r.service = w.service.ledger.Gap(begin, end)
	}
	r.since, r.direct = w.direct.ledger.Pause(begin, end)
	return r, w.verify(ctx, s)
}

func prepare(ctx context.Context, s *side, how way) error {
	if s.prepare != nil {
		if err := s.prepare(ctx); err != nil {
			return err
		}
	}
	if how.prepare != nil {
		return how.prepare(ctx)
	}
	return nil
}

// disturb does it to the primary, waits until another instance has the role and all writers have written again, and heals.
func disturb(ctx context.Context, s *side, name string, t *timeline, w *writers) error {
	how := s.ways[name]
	primary, err := s.primary(ctx)
	if err != nil {
		return err
	}
	other := s.instances[slices.IndexFunc(s.instances, func(name string) bool { return name != primary })]
	t.add("bench", "%s of %s begins", name, primary)
	if err := how.do(ctx, t, primary, other); err != nil {
		return err
	}
	t.add("bench", "the command has returned")
	err = framework.Await(ctx, "another primary than "+primary, calmWithin, func(ctx context.Context) (bool, string, error) {
		now, err := s.primary(ctx)
		return now != "" && now != primary, now, err
	})
	if err != nil || how.heal == nil {
		return err
	}
	if err := w.awaitWrites(ctx, time.Now()); err != nil {
		return err
	}
	t.add("bench", "%s is healed", name)
	return how.heal(ctx, primary)
}
