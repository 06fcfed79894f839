package agent

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

const (
	// handoffBound is how long a primary that has stepped down waits for one replica to hold what it executed.
	handoffBound = 5 * time.Second
	// stepDownBound is how long the server may take to become read-only, releaseBound how long the lease may
	// then take to be given back.
	stepDownBound = 60 * time.Second
	releaseBound  = 10 * time.Second
	// hangBound is for how long a server that runs may answer nothing at all before it is killed: it can hand nothing
	// over, and until its lease is free nobody can take the role.
	hangBound = 10 * time.Second
	// graceMargin is kept of the Pod's grace period, for the manager itself.
	graceMargin = 3 * time.Second
	stopPoll    = 50 * time.Millisecond
)

// ShutdownOptions are what a Shutdown works with.
type ShutdownOptions struct {
	Name     string
	Stopping *Stopping
	Instance *Instance
	Reader   Reader
	Keeper   *Keeper
	Watcher  *Watcher
	Peers    Asker
	// Wake makes the role loop and the reporter look at once.
	Wake func()
	// Abandon ends provisioning.
	Abandon func()
	// Disconnect closes the connections to the server, for good: a server that stops waits seconds for them.
	Disconnect func()
	// Ordered asks whether the Pod is to be stopped already. It is asked once, after signals are heard.
	Ordered func(context.Context) (bool, error)
	// NoRoom tells that the server's volume takes no more: it can hand nothing over. Nil for never.
	NoRoom func() bool
	// Grace is what the kubelet gives this very Pod between the signal and the end; 0 when that is not known. The Cluster
	// may say something else by now.
	Grace time.Duration
	Log   logr.Logger
}

// Shutdown ends the server in order after a signal: the role goes first, then the server.
type Shutdown struct {
	o ShutdownOptions
	// answered is when the server last answered, or the stop began.
	answered time.Time
}

// NewShutdown makes a Shutdown.
func NewShutdown(o ShutdownOptions) *Shutdown { return &Shutdown{o: o} }

// Run waits for a signal and ends the server; a second signal ends the waiting for others. It returns when
// no server is left, or with ctx.
func (s *Shutdown) Run(ctx context.Context, signals <-chan os.Signal) error {
	ordered := make(chan struct{})
	go s.orderedBefore(ctx, ordered)
	signalled := false
	select {
	case <-ctx.Done():
		return nil
	case <-signals:
		signalled = true
	case <-ordered:
	}
	s.o.Log.Info("the Pod is being stopped", "signal", signalled)
	s.answered = time.Now()
	grace, smart := api.DefaultMaxStopDelay, api.DefaultSmartShutdownTimeout
	cluster := s.o.Watcher.Cluster()
	if cluster != nil {
		grace, smart = cluster.Spec.MaxStopDelay, deref(cluster.Spec.SmartShutdownTimeout)
	}
	limit := time.Duration(grace) * time.Second
	if s.o.Grace > 0 {
		limit = min(limit, s.o.Grace)
	}
	limit = max(limit-graceMargin, graceMargin)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	hurry, hurried := context.WithCancel(ctx)
	defer hurried()
	go func() {
		for {
			select {
			case <-signals:
			case <-ctx.Done():
				return
			}
			if signalled {
				s.o.Log.Info("asked again: waiting for nobody")
				hurried()
				return
			}
			// The signal of the stop that was seen in the Pod.
			signalled = true
		}
	}()
	s.o.Abandon()
	s.o.Stopping.asked.Store(true)
	s.o.Wake()
	readOnly := s.giveUpRole(ctx, hurry, cluster, min(time.Duration(smart)*time.Second, limit/2))
	return s.stopServer(ctx, readOnly)
}

// orderedBefore closes the channel when the Pod was to be stopped before this process could hear of it: the kubelet sends
// its signal once, and the kernel drops what reaches process 1 before it listens. The stop is written into the Pod before the
// signal is sent, so to ask once is enough.
func (s *Shutdown) orderedBefore(ctx context.Context, ordered chan<- struct{}) {
	for ctx.Err() == nil {
		asked, cancel := context.WithTimeout(ctx, callTimeout)
		stopping, err := s.o.Ordered(asked)
		cancel()
		if err == nil {
			if stopping {
				close(ordered)
			}
			return
		}
		s.o.Log.V(1).Info("cannot ask whether the Pod is being stopped", "error", err.Error())
		timer := time.NewTimer(lastRepeat)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// giveUpRole returns whether the server is confirmed to take no writes.
func (s *Shutdown) giveUpRole(ctx, hurry context.Context, cluster *api.Cluster, smart time.Duration) bool {
	writable := s.primary(ctx)
	peers := cluster != nil && len(others(cluster, s.o.Name)) > 0 && !s.o.Watcher.Deleted()
	if writable && peers {
		s.o.Log.Info("waiting for the role to be moved", "atMost", smart.String())
		s.until(hurry, smart, func() bool {
			return s.o.Watcher.Deleted() || !s.primary(ctx) && !s.o.Keeper.Facts().Mine || s.hangs() || s.noRoom()
		})
	}
	s.o.Stopping.stepDown.Store(true)
	s.o.Wake()
	bound := closeBound(s.o.NoRoom)
	if deadline, ok := ctx.Deadline(); ok {
		bound = min(bound, time.Until(deadline)/2)
	}
	readOnly := false
	s.until(ctx, bound, func() bool {
		readOnly = !s.primary(ctx)
		return readOnly || s.hangs()
	})
	if readOnly {
		s.until(ctx, min(releaseBound, bound), func() bool { return s.released() || !s.o.Instance.Running() })
	}
	if writable && peers && readOnly && !s.o.Watcher.Deleted() {
		s.awaitReplica(hurry, cluster)
	}
	return readOnly
}

// released tells that nobody has to wait for the lease of this Pod: it was given back, or it goes with its
// Cluster.
func (s *Shutdown) released() bool { return !s.o.Keeper.Facts().Mine || s.o.Watcher.Deleted() }

// primary tells whether the server may be writable: anything but read-only confirmed, or no server.
func (s *Shutdown) primary(ctx context.Context) bool {
	if s.o.Instance.Gone() {
		return false
	}
	if !s.o.Instance.Running() {
		// It starts, or stops, read-only; it was never opened.
		return false
	}
	facts := s.read(ctx)
	return facts == nil || !facts.SuperReadOnly
}

func (s *Shutdown) read(ctx context.Context) *protocol.MySQL {
	ctx, cancel := context.WithTimeout(ctx, freshTimeout)
	defer cancel()
	facts, err := s.o.Reader.Read(ctx)
	if err != nil {
		return nil
	}
	s.answered = time.Now()
	return facts
}

// closeBound is how long a server may take to become read-only. On a volume without room it may never.
func closeBound(noRoom func() bool) time.Duration {
	if noRoom != nil && noRoom() {
		return hangBound
	}
	return stepDownBound
}

func (s *Shutdown) noRoom() bool { return s.o.NoRoom != nil && s.o.NoRoom() }

// hangs tells that the server runs and has answered nothing for long.
func (s *Shutdown) hangs() bool { return s.o.Instance.Running() && time.Since(s.answered) >= hangBound }

// awaitReplica waits until a replica holds everything: a server that has stopped sends nothing more.
func (s *Shutdown) awaitReplica(ctx context.Context, cluster *api.Cluster) {
	facts := s.read(ctx)
	if facts == nil {
		return
	}
	if !s.until(ctx, handoffBound, func() bool { return s.heldElsewhere(ctx, cluster, facts.Executed) }) {
		s.o.Log.Info("stopping although no replica was seen to hold everything")
	}
}

func (s *Shutdown) heldElsewhere(ctx context.Context, cluster *api.Cluster, executed gtid.Set) bool {
	for _, p := range peersOf(s.o.Peers.Ask(ctx, others(cluster, s.o.Name)), nil) {
		if p.Held.Contains(executed) {
			return true
		}
	}
	return false
}

// stopServer ends the server cleanly when it takes no writes: a clean stop would answer clients whose
// commits nobody has acknowledged. Otherwise it is killed.
func (s *Shutdown) stopServer(ctx context.Context, readOnly bool) error {
	if !readOnly && s.primary(ctx) {
		s.o.Log.Info("killing the server: it was not confirmed to be read-only")
		s.o.Instance.Kill()
	}
	started := time.Now()
	s.o.Instance.leave()
	s.o.Disconnect()
	if err := s.o.Instance.Stop(ctx); err != nil {
		return fmt.Errorf("stopping the server: %w", err)
	}
	s.o.Wake()
	// A server that was killed leaves its lease to be given back only now.
	s.until(ctx, handoffBound, s.released)
	s.o.Log.Info("the server has stopped", "took", time.Since(started).Round(time.Millisecond).String())
	return nil
}

// until waits, for a bounded time, until something is so.
func (s *Shutdown) until(ctx context.Context, bound time.Duration, so func() bool) bool {
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	for {
		if so() {
			return true
		}
		if sleep(ctx, stopPoll); ctx.Err() != nil {
			return false
		}
	}
}
