package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cnmsql.co/operator/instance/lease"
	"cnmsql.co/operator/instance/protocol"
)

// Voters ask other instances to vouch for this one.
type Voters interface {
	// Vouch asks one instance. An error is an instance that has not answered.
	Vouch(ctx context.Context, instance string, q protocol.VouchQuestion) (protocol.VouchAnswer, error)
}

// Vouch answers another instance that holds the lease and cannot renew it.
func (k *Keeper) Vouch(q protocol.VouchQuestion) protocol.VouchAnswer {
	view := k.view()
	k.mu.Lock()
	now, log := k.o.Clock.Now(), k.log
	before, _ := k.state.Promised(now)
	s, a := k.state.Answer(now, k.o.Instance, lease.Question(q), view)
	k.change(s)
	k.mu.Unlock()
	if a.Vouches && before == q.Holder {
		log = log.V(1) // it asks every few seconds
	}
	log.Info("asked to vouch for the holder of the primary lease", "holder", q.Holder, "vouches", a.Vouches, "reason", a.Why)
	return protocol.VouchAnswer(a)
}

// rounds asks the others whenever that is due.
func (k *Keeper) rounds(ctx context.Context) {
	for ctx.Err() == nil {
		s, now := k.look()
		switch {
		case !s.Holding():
			select {
			case <-ctx.Done():
			case <-k.asking:
			}
		case s.Due(now).Vouch:
			k.ask(ctx)
		default:
			sleep(ctx, max(clockCheck, s.VouchAt()-now))
		}
	}
}

// ask is one round of questions with what is to be said about it.
func (k *Keeper) ask(ctx context.Context) {
	s, started := k.look()
	ctx, cancel := context.WithTimeout(ctx, min(leaseTimes.VouchCall, s.Remaining(started)))
	defer cancel()
	v := k.round(ctx)
	k.mu.Lock()
	k.peers = v.Peers
	was := k.doubt
	k.doubt = v.Why
	switch {
	case v.Unanimous:
		k.change(k.state.Agreed(started))
	case v.Newer:
		k.change(k.state.Displaced())
	default:
		k.change(k.state.Doubted(started))
	}
	k.mu.Unlock()
	log := k.log
	if renewed, _ := s.RenewedAt(); s.Confirmed() > renewed && was == "" {
		log = log.V(1) // the round before came to the same
	}
	switch {
	case v.Unanimous:
		log.Info("the API server is not reached; going on by the word of all other instances", "instances", v.Peers)
		k.o.Changed()
	case v.Newer:
		k.log.Info("another instance knows a later primary", "reason", v.Why)
		k.urgent.set()
	case was != v.Why:
		k.log.Info("the other instances do not all vouch", "reason", v.Why)
	}
}

// round asks everybody that the lists name, those of the answers included, until all have answered or ctx ends.
func (k *Keeper) round(ctx context.Context) lease.Verdict {
	view := k.view()
	attached, err := k.attached(ctx)
	if err != nil {
		return lease.Verdict{Why: fmt.Sprintf("which replicas are attached is not known: %v", err)}
	}
	q := protocol.VouchQuestion{Instance: k.o.Instance, Holder: k.o.Holder, Generation: view.Generation}
	type result struct {
		answer lease.Answer
		err    error
	}
	results := make(chan result)
	var asked []string
	var answers []lease.Answer
	for waiting := 0; ; waiting-- {
		v := lease.Tally(k.o.Instance, view.Instances, attached, answers)
		for _, name := range v.Ask {
			if slices.Contains(asked, name) {
				continue
			}
			asked = append(asked, name)
			waiting++
			go func() {
				a, err := k.o.Voters.Vouch(ctx, name, q)
				a.From = name
				select {
				case results <- result{lease.Answer(a), err}:
				case <-ctx.Done():
				}
			}()
		}
		if waiting == 0 || v.Newer {
			return v
		}
		select {
		case <-ctx.Done():
			return v
		case r := <-results:
			if r.err == nil {
				answers = append(answers, r.answer)
			}
		}
	}
}

func (k *Keeper) attached(ctx context.Context) ([]string, error) {
	if k.o.Attached == nil || k.o.Fencer.Gone() {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTimes.VouchRetry)
	defer cancel()
	return k.o.Attached(ctx)
}

// vouching tells whether others are asked at all.
func (k *Keeper) vouching() bool { return k.o.Voters != nil }

// await is how long to wait for a moment of the clock, at most as long as a timer may be wrong about it.
func (k *Keeper) await(next time.Duration) time.Duration {
	return min(clockCheck, max(time.Millisecond, next-k.o.Clock.Now()))
}
