package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/role"
)

// The times of the primary lease. A server whose manager last renewed at 0 is read-only at 13 s at the
// latest, and nobody else may take the lease before 15 s.
const (
	leaseTTL    = api.PrimaryLeaseTTL
	renewEvery  = leaseTTL / 3
	renewRetry  = time.Second
	callTimeout = 3 * time.Second // below renewEvery
	fenceAfter  = 10 * time.Second
	killAfter   = 13 * time.Second
)

// errNotFree tells that the lease is somebody else's.
var errNotFree = errors.New("the primary lease is held by another instance")

// Keeper is the one that holds the primary lease for this Pod.
type Keeper struct {
	api    LeaseAPI
	clock  Clock
	holder string
	fencer Fencer
	log    logr.Logger
	// changed is called after each change of the state, without locks.
	changed func()
	// call lets one call through that writes, so that a renewal never follows a release.
	call gate
	// urgent wakes the part that fences, due the part that renews.
	urgent, due signal

	mu       sync.Mutex
	seen     *coordinationv1.Lease
	seenAt   time.Duration // when this version was first seen
	gotAt    time.Duration // when it was accepted
	holding  bool          // acquired by this process, and neither released nor lost
	renewed  time.Duration // start of the last successful renewal or acquisition
	tried    time.Duration // start of the last renewal, whether or not it succeeded
	acquired time.Duration // end of the acquisition
	fenced   bool
	fencedAt time.Duration
	lost     bool // another holder was seen while holding
	failing  bool // for the log: the last renewal failed
}

// NewKeeper makes a Keeper for the holder identity of this Pod, see api.LeaseHolder.
func NewKeeper(a LeaseAPI, clock Clock, holder string, fencer Fencer, changed func(), log logr.Logger) *Keeper {
	return &Keeper{
		api: a, clock: clock, holder: holder, fencer: fencer, changed: changed, log: log,
		call: newGate(), urgent: newSignal(), due: newSignal(),
	}
}

// Facts is the lease as last seen and what it means to this instance now.
func (k *Keeper) Facts() role.LeaseFacts {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil {
		return role.LeaseFacts{}
	}
	holder := holderOf(k.seen)
	f := role.LeaseFacts{
		Known: true, Holder: holder, Mine: holder == k.holder,
		InForce:        k.inForce(),
		HandoffAttempt: k.seen.Annotations[api.AnnotationHandoffAttempt],
	}
	f.Expired = holder != "" && !f.Mine && k.untilExpiry() <= 0
	if text, ok := k.seen.Annotations[api.AnnotationHandoffGTID]; ok {
		if set, err := gtid.Parse(text); err == nil {
			f.Handoff = &set
		}
	}
	return f
}

// Remaining is how long the lease stays in force without another renewal, 0 when it is not.
func (k *Keeper) Remaining() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.inForce() {
		return 0
	}
	return k.renewed + fenceAfter - k.clock.Now()
}

// UntilExpiry is how long another's lease must still be watched without a renewal before it has expired; 0
// when it has, or when there is none.
func (k *Keeper) UntilExpiry() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil || holderOf(k.seen) == "" || holderOf(k.seen) == k.holder {
		return 0
	}
	return max(0, k.untilExpiry())
}

// AcquiredAt is when this process took the lease that it holds; false when it holds none.
func (k *Keeper) AcquiredAt() (time.Duration, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.acquired, k.holding
}

// State is what the report says: whether the lease is held in force, how long ago it was renewed (-1 ms when
// never), and for how long the server has been fenced (negative when it is not).
func (k *Keeper) State() (held bool, renewedAgo, fencedFor time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.clock.Now()
	renewedAgo, fencedFor = -time.Millisecond, -time.Millisecond
	if k.holding {
		renewedAgo = now - k.renewed
	}
	if k.fenced {
		fencedFor = now - k.fencedAt
	}
	return k.inForce(), renewedAgo, fencedFor
}

func (k *Keeper) inForce() bool {
	return k.holding && k.clock.Now() < k.renewed+fenceAfter
}

// untilExpiry counts from when this process first saw the present version, never from what is written in it.
func (k *Keeper) untilExpiry() time.Duration {
	ttl := leaseTTL
	if s := k.seen.Spec.LeaseDurationSeconds; s != nil {
		ttl = max(ttl, time.Duration(*s)*time.Second)
	}
	return k.seenAt + ttl - k.clock.Now()
}

// observe takes a Lease that was read; asked is when it was asked for, 0 for an event of a watch.
func (k *Keeper) observe(lease *coordinationv1.Lease, asked time.Duration) {
	k.mu.Lock()
	now := k.clock.Now()
	fresh := k.seen == nil || supersedes(lease, k.seen) || asked > k.gotAt
	news := fresh && (k.seen == nil || lease.ResourceVersion != k.seen.ResourceVersion)
	if fresh {
		k.gotAt = now
	}
	isHolder := holderOf(lease) == k.holder
	// A holder's renewals change nothing for anybody's role.
	silent := k.seen != nil && holderOf(k.seen) == holderOf(lease) &&
		k.seen.Annotations[api.AnnotationHandoffAttempt] == lease.Annotations[api.AnnotationHandoffAttempt]
	if news {
		k.seen, k.seenAt = lease, now
		if k.holding && !isHolder {
			k.holding, k.lost = false, true
		}
		if k.fenced && !isHolder {
			k.fenced = false
		}
	}
	k.mu.Unlock()
	if news && !silent {
		k.urgent.set()
		k.changed()
	}
}

// Acquire takes the lease, or renews it when this Pod is already the holder.
func (k *Keeper) Acquire(ctx context.Context) error {
	if err := k.call.enter(ctx); err != nil {
		return fmt.Errorf("acquiring the primary lease: %w", err)
	}
	defer k.call.leave()
	facts := k.Facts()
	if !facts.Known || (facts.Holder != "" && !facts.Mine && !facts.Expired) {
		return errNotFree
	}
	err := k.write(ctx, func(l *coordinationv1.Lease, now metav1.MicroTime) {
		if holderOf(l) != k.holder {
			l.Spec.AcquireTime = &now
			l.Spec.LeaseTransitions = new(deref(l.Spec.LeaseTransitions) + 1)
		}
		l.Spec.HolderIdentity = new(k.holder)
		l.Spec.LeaseDurationSeconds = new(int32(leaseTTL / time.Second))
		l.Spec.RenewTime = &now
	}, func(started time.Duration) {
		if !k.holding {
			k.acquired = k.clock.Now()
		}
		k.holding, k.lost, k.renewed = true, false, started
		k.fenced, k.failing = false, false
	})
	if err != nil {
		return fmt.Errorf("acquiring the primary lease: %w", err)
	}
	k.urgent.set()
	k.due.set()
	k.changed()
	return nil
}

// Release gives the lease back, with what the server had executed for the attempt of a switchover. The
// caller knows that the server is not writable. A lease that is somebody else's is left alone.
func (k *Keeper) Release(ctx context.Context, executed *gtid.Set, attempt string) error {
	if err := k.call.enter(ctx); err != nil {
		return fmt.Errorf("releasing the primary lease: %w", err)
	}
	defer k.call.leave()
	// From here on it is not held, whatever comes of the call: the watch may tell of the release before the
	// answer does, and that is no loss. A release that fails leaves a lease that can be acquired again.
	k.mu.Lock()
	k.holding = false
	k.mu.Unlock()
	for {
		if facts := k.Facts(); !facts.Mine {
			return nil
		}
		err := k.write(ctx, func(l *coordinationv1.Lease, now metav1.MicroTime) {
			l.Spec.HolderIdentity = nil
			l.Spec.RenewTime = &now
			if executed == nil {
				return
			}
			if l.Annotations == nil {
				l.Annotations = map[string]string{}
			}
			l.Annotations[api.AnnotationHandoffGTID] = executed.String()
			l.Annotations[api.AnnotationHandoffAttempt] = attempt
		}, func(time.Duration) { k.lost, k.fenced = false, false })
		if err == nil {
			k.changed()
			return nil
		}
		// A renewal whose answer was lost moves the version under our own name; anybody else's ends this.
		if !apierrors.IsConflict(err) || ctx.Err() != nil {
			return fmt.Errorf("releasing the primary lease: %w", err)
		}
	}
}

// renew is one try. The call before may have got through without our knowing, so a conflict is looked into
// at once.
func (k *Keeper) renew(ctx context.Context) error {
	if err := k.call.enter(ctx); err != nil {
		return err
	}
	defer k.call.leave()
	for range 2 {
		if _, holding := k.AcquiredAt(); !holding {
			return nil
		}
		err := k.write(ctx, func(l *coordinationv1.Lease, now metav1.MicroTime) {
			l.Spec.RenewTime = &now
		}, func(started time.Duration) { k.renewed, k.fenced = started, false })
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}

// write changes the Lease as last seen with one conditional update, and calls done with the start of the
// call while the state is locked. After a conflict the Lease is read anew and the conflict returned.
func (k *Keeper) write(ctx context.Context, change func(*coordinationv1.Lease, metav1.MicroTime), done func(started time.Duration)) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	k.mu.Lock()
	lease := k.seen.DeepCopy()
	k.mu.Unlock()
	change(lease, metav1.NowMicro())
	started := k.clock.Now()
	stored, err := k.api.UpdateLease(ctx, lease)
	if err == nil {
		k.stored(stored, func() { done(started) })
		return nil
	}
	if apierrors.IsConflict(err) {
		asked := k.clock.Now()
		present, readErr := k.api.Lease(ctx)
		if readErr != nil {
			return errors.Join(readErr, errors.New("after a conflict"))
		}
		k.observe(present, asked)
	}
	return err
}

// stored takes the answer to our own update: it is the present state unless something newer was seen already.
func (k *Keeper) stored(lease *coordinationv1.Lease, done func()) {
	k.mu.Lock()
	current := supersedes(lease, k.seen)
	if current {
		now := k.clock.Now()
		k.seen, k.seenAt, k.gotAt = lease, now, now
		done()
	} else if holderOf(k.seen) == holderOf(lease) {
		done()
	}
	k.mu.Unlock()
}

func holderOf(l *coordinationv1.Lease) string { return deref(l.Spec.HolderIdentity) }

func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
