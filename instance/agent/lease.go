package agent

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/lease"
	"cnmsql.co/operator/instance/role"
)

// leaseTimes are what the lease lives by; callTimeout bounds every call to the API server.
var (
	leaseTimes  = lease.DefaultTimes()
	callTimeout = leaseTimes.Call
)

// KeeperOptions are what a Keeper works with.
type KeeperOptions struct {
	API   LeaseAPI
	Clock Clock
	// Instance is this instance's name, Holder the identity of its Pod, see api.LeaseHolder.
	Instance, Holder string
	Fencer           Fencer
	// Voters are the other instances; nil when nobody is asked to vouch.
	Voters Voters
	// View is the Cluster as last seen. Attached are the instances that the server sends its binary log to.
	View     func() lease.View
	Attached func(ctx context.Context) ([]string, error)
	// Switch is told until when the server may be writable; nil when nobody is to be told.
	Switch Switch
	// Changed is called after each change of the state, without locks.
	Changed func()
	Log     logr.Logger
}

// Switch is the dead man's switch: it kills the server when the moment that it was told last passes without
// another word. Its methods never wait.
type Switch interface {
	// Arm takes the moment by the Keeper's clock, Disarm ends it.
	Arm(at time.Duration)
	Disarm()
	// Trusted tells that it works, or did a moment ago.
	Trusted() bool
}

// Keeper is the one that holds the primary lease for this Pod. What is due when is package lease's.
type Keeper struct {
	o   KeeperOptions
	log logr.Logger
	// call lets one call through that writes, so that a renewal never follows a release.
	call gate
	// urgent wakes the part that fences, due the one that renews and asking the one that asks the others.
	urgent, due, asking signal

	mu      sync.Mutex
	state   lease.State
	seen    *coordinationv1.Lease
	gotAt   time.Duration // when it was accepted
	peers   []string      // who had to be asked in the last round
	fences  uint64        // how many have begun
	failing bool          // for the log: the last renewal failed
	doubt   string        // for the log: why the last round was not unanimous
}

// NewKeeper makes a Keeper.
func NewKeeper(o KeeperOptions) *Keeper {
	return &Keeper{
		o: o, log: o.Log, state: lease.New(o.Holder, leaseTimes),
		call: newGate(), urgent: newSignal(), due: newSignal(), asking: newSignal(),
	}
}

// change puts another state in the place of the present one, and tells the switch. The caller holds the lock.
func (k *Keeper) change(s lease.State) {
	k.state = s
	if k.o.Switch == nil {
		return
	}
	if at, armed := s.KillBy(); armed {
		k.o.Switch.Arm(at)
	} else {
		k.o.Switch.Disarm()
	}
}

// with changes the state.
func (k *Keeper) with(change func(s lease.State, now time.Duration) lease.State) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.change(change(k.state, k.o.Clock.Now()))
}

// look is the present state and moment.
func (k *Keeper) look() (lease.State, time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state, k.o.Clock.Now()
}

// Facts is the lease as last seen and what it means to this instance now.
func (k *Keeper) Facts() role.LeaseFacts {
	k.mu.Lock()
	defer k.mu.Unlock()
	record, known := k.state.Record()
	if !known {
		return role.LeaseFacts{}
	}
	now := k.o.Clock.Now()
	f := role.LeaseFacts{
		Known: true, Holder: record.Holder, Mine: k.state.Mine(), InForce: k.state.InForce(now),
		Expired:        k.state.UntilExpiry(now) == 0,
		HandoffAttempt: k.seen.Annotations[api.AnnotationHandoffAttempt],
	}
	f.PromisedTo, _ = k.state.Promised(now)
	f.Unwatched = k.o.Switch != nil && !k.o.Switch.Trusted()
	if text, ok := k.seen.Annotations[api.AnnotationHandoffGTID]; ok {
		if set, err := gtid.Parse(text); err == nil {
			f.Handoff = &set
		}
	}
	return f
}

// Remaining is how long the lease stays in force without another confirmation, 0 when it is not.
func (k *Keeper) Remaining() time.Duration {
	s, now := k.look()
	return s.Remaining(now)
}

// UntilAcquirable is how long it takes until this instance may take the lease, if nothing happens meanwhile; 0
// when it may now, or when no passing of time leads there.
func (k *Keeper) UntilAcquirable() time.Duration {
	s, now := k.look()
	if d := s.UntilAcquirable(now); d != lease.Never {
		return d
	}
	return 0
}

// AcquiredAt is when this process took the lease that it holds; false when it holds none.
func (k *Keeper) AcquiredAt() (time.Duration, bool) {
	s, _ := k.look()
	return s.AcquiredAt()
}

// Fences is how many fences have begun.
func (k *Keeper) Fences() uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fences
}

// Recorded is what an annotation of the Lease, as last seen, says.
func (k *Keeper) Recorded(annotation string) string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.seen == nil {
		return ""
	}
	return k.seen.Annotations[annotation]
}

// LeaseState is what the report says of the lease.
type LeaseState struct {
	// Held tells that it is in force, Vouched that this is so by the other instances' word alone.
	Held, Vouched bool
	// RenewedAgo is how long ago it was renewed, -1 ms when never.
	RenewedAgo time.Duration
	// FencedFor is for how long the server has been fenced, negative when it is not.
	FencedFor time.Duration
	// Peers are the instances that are asked before it goes on without a renewal.
	Peers []string
}

// State is what the report says.
func (k *Keeper) State() LeaseState {
	view := k.view()
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.o.Clock.Now()
	out := LeaseState{
		Held: k.state.InForce(now), Vouched: k.state.Vouched(now),
		RenewedAgo: -time.Millisecond, FencedFor: -time.Millisecond,
	}
	if at, holding := k.state.RenewedAt(); holding {
		out.RenewedAgo = now - at
		out.Peers = lease.Tally(k.o.Instance, append(view.Instances, k.peers...), nil, nil).Peers
	}
	if d, fenced := k.state.Fenced(now); fenced {
		out.FencedFor = d
	}
	return out
}

func (k *Keeper) view() lease.View {
	if k.o.View == nil {
		return lease.View{}
	}
	v := k.o.View()
	v.Instances = slices.Clone(v.Instances)
	return v
}

// observe takes a Lease that was read; asked is when it was asked for, 0 for an event of a watch.
func (k *Keeper) observe(l *coordinationv1.Lease, asked time.Duration) {
	k.mu.Lock()
	now := k.o.Clock.Now()
	fresh := k.seen == nil || supersedes(l, k.seen) || asked > k.gotAt
	news := fresh && (k.seen == nil || l.ResourceVersion != k.seen.ResourceVersion)
	// A holder's renewals change nothing for anybody's role.
	silent := k.seen != nil && holderOf(k.seen) == holderOf(l) &&
		k.seen.Annotations[api.AnnotationHandoffAttempt] == l.Annotations[api.AnnotationHandoffAttempt]
	if fresh {
		k.gotAt = now
	}
	if news {
		k.seen = l
		k.change(k.state.Observe(now, recordOf(l)))
	}
	k.mu.Unlock()
	if news && !silent {
		k.urgent.set()
		k.o.Changed()
	}
}

func recordOf(l *coordinationv1.Lease) lease.Record {
	return lease.Record{
		Version: l.ResourceVersion, Holder: holderOf(l),
		TTL: time.Duration(deref(l.Spec.LeaseDurationSeconds)) * time.Second,
	}
}

func holderOf(l *coordinationv1.Lease) string { return deref(l.Spec.HolderIdentity) }

func deref[T any](p *T) T {
	var zero T
	if p == nil {
		return zero
	}
	return *p
}
