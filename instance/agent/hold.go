package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/lease"
)

var (
	// errNotFree tells that the lease is somebody else's, or promised to be.
	errNotFree = errors.New("the primary lease is not to be taken now")
	// errNotMine tells that there is nothing to renew or to give back.
	errNotMine = errors.New("the primary lease is not held by this Pod")
)

// leaseChange is one write of the Lease. The state that the change is made from comes with it, under one lock, so that what was
// decided about one version is never written over another.
type leaseChange struct {
	// make changes the Lease, or says why it must not be.
	make func(s lease.State, now time.Duration, l *coordinationv1.Lease) error
	// done is the state after the call that was started then got through.
	done func(s lease.State, started, now time.Duration) lease.State
}

// Acquire takes the lease, or renews it when this Pod is already the holder.
func (k *Keeper) Acquire(ctx context.Context) error {
	if err := k.call.enter(ctx); err != nil {
		return fmt.Errorf("acquiring the primary lease: %w", err)
	}
	defer k.call.leave()
	err := k.write(ctx, leaseChange{
		make: func(s lease.State, now time.Duration, l *coordinationv1.Lease) error {
			if !s.MayAcquire(now) {
				return errNotFree
			}
			wall := metav1.NowMicro()
			if !s.Mine() {
				l.Spec.AcquireTime = &wall
				l.Spec.LeaseTransitions = new(deref(l.Spec.LeaseTransitions) + 1)
			}
			l.Spec.HolderIdentity = new(k.o.Holder)
			l.Spec.LeaseDurationSeconds = new(int32(leaseTimes.TTL / time.Second))
			l.Spec.RenewTime = &wall
			return nil
		},
		done: lease.State.Acquired,
	})
	if err != nil {
		return fmt.Errorf("acquiring the primary lease: %w", err)
	}
	k.mu.Lock()
	k.failing, k.doubt = false, ""
	k.mu.Unlock()
	k.urgent.set()
	k.due.set()
	k.asking.set()
	k.o.Changed()
	return nil
}

// Release gives the lease back, with what the server had executed for the attempt of a switchover. The
// caller knows that the server is not writable. A lease that is somebody else's is left alone.
func (k *Keeper) Release(ctx context.Context, executed *gtid.Set, attempt string) error {
	if err := k.call.enter(ctx); err != nil {
		return fmt.Errorf("releasing the primary lease: %w", err)
	}
	defer k.call.leave()
	// The watch may tell of the release before the answer does, and that is no loss. A release that fails
	// leaves a lease that can be acquired again.
	k.with(func(s lease.State, _ time.Duration) lease.State { return s.Releasing() })
	for {
		err := k.write(ctx, leaseChange{
			make: func(s lease.State, _ time.Duration, l *coordinationv1.Lease) error {
				if !s.Mine() {
					return errNotMine
				}
				handOver(l, executed, attempt)
				return nil
			},
			done: func(s lease.State, _, _ time.Duration) lease.State { return s.Released() },
		})
		switch {
		case errors.Is(err, errNotMine):
			return nil
		case err == nil:
			k.o.Changed()
			return nil
		case !apierrors.IsConflict(err) || ctx.Err() != nil:
			return fmt.Errorf("releasing the primary lease: %w", err)
		}
		// A renewal whose answer was lost moves the version under our own name; anybody else's ends this.
	}
}

func handOver(l *coordinationv1.Lease, executed *gtid.Set, attempt string) {
	l.Spec.HolderIdentity = nil
	l.Spec.RenewTime = new(metav1.NowMicro())
	if executed == nil {
		return
	}
	if l.Annotations == nil {
		l.Annotations = map[string]string{}
	}
	l.Annotations[api.AnnotationHandoffGTID] = executed.String()
	l.Annotations[api.AnnotationHandoffAttempt] = attempt
}

// Record writes an annotation on the Lease that this Pod holds, and so renews it.
func (k *Keeper) Record(ctx context.Context, annotation, text string) error {
	if err := k.call.enter(ctx); err != nil {
		return fmt.Errorf("recording %s on the primary lease: %w", annotation, err)
	}
	defer k.call.leave()
	err := k.write(ctx, leaseChange{
		make: func(s lease.State, _ time.Duration, l *coordinationv1.Lease) error {
			if !s.Holding() || !s.Mine() {
				return errNotMine
			}
			l.Spec.RenewTime = new(metav1.NowMicro())
			if l.Annotations == nil {
				l.Annotations = map[string]string{}
			}
			l.Annotations[annotation] = text
			return nil
		},
		done: func(s lease.State, started, _ time.Duration) lease.State { return s.Renewed(started) },
	})
	if err != nil {
		return fmt.Errorf("recording %s on the primary lease: %w", annotation, err)
	}
	return nil
}

// renew is one try. The call before may have got through without our knowing, so a conflict is looked into
// at once.
func (k *Keeper) renew(ctx context.Context) error {
	if err := k.call.enter(ctx); err != nil {
		return err
	}
	defer k.call.leave()
	for range 2 {
		err := k.write(ctx, leaseChange{
			make: func(s lease.State, _ time.Duration, l *coordinationv1.Lease) error {
				if !s.Holding() || !s.Mine() {
					return errNotMine
				}
				l.Spec.RenewTime = new(metav1.NowMicro())
				return nil
			},
			done: func(s lease.State, started, _ time.Duration) lease.State { return s.Renewed(started) },
		})
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// write changes the Lease as last seen with one conditional update. After a conflict the Lease is read anew
// and the conflict returned.
func (k *Keeper) write(ctx context.Context, c leaseChange) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k.mu.Lock()
	started := k.o.Clock.Now()
	if k.seen == nil {
		k.mu.Unlock()
		return errNotFree
	}
	changed := k.seen.DeepCopy()
	err := c.make(k.state, started, changed)
	k.mu.Unlock()
	if err != nil {
		return err
	}
	stored, err := k.o.API.UpdateLease(ctx, changed)
	if err == nil {
		k.stored(stored, started, c)
		return nil
	}
	if apierrors.IsConflict(err) {
		asked := k.o.Clock.Now()
		present, readErr := k.o.API.Lease(ctx)
		if readErr != nil {
			return errors.Join(readErr, errors.New("after a conflict"))
		}
		k.observe(present, asked)
	}
	return err
}

// stored takes the answer to our own update: it is the present state unless something newer was seen already.
func (k *Keeper) stored(l *coordinationv1.Lease, started time.Duration, c leaseChange) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now, s := k.o.Clock.Now(), k.state
	if supersedes(l, k.seen) {
		k.seen, k.gotAt = l, now
		s = s.Observe(now, recordOf(l))
	} else if holderOf(k.seen) != holderOf(l) {
		return
	}
	k.change(c.done(s, started, now))
}
