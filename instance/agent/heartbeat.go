package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// Stamper is the server's heartbeat, see mysql.Server.
type Stamper interface {
	Stamp(ctx context.Context, generation int64) error
	FillStamps(ctx context.Context) (int, error)
	Stamps(ctx context.Context) ([]mysql.Stamp, error)
}

// HeartbeatOptions are what a Heartbeat works with.
type HeartbeatOptions struct {
	Server Stamper
	// Cluster is the Cluster with its defaults as last seen; nil before.
	Cluster func() *api.Cluster
	// Report is the present report.
	Report func() protocol.Report
	Clock  Clock
	Log    logr.Logger
}

// Heartbeat stamps while this instance is the writable primary, and else reads how old the newest stamp of the latest
// primary is that it has applied.
type Heartbeat struct {
	o    HeartbeatOptions
	wake signal
	// running are the stamp that is being written and the filling of gaps, which may wait for acknowledgements.
	running sync.WaitGroup

	mu      sync.Mutex
	state   protocol.Heartbeat
	enabled bool
	readAt  time.Duration // of the lag in the state
	since   time.Duration // since when a stamp is due or being written; 0 for none
	writing bool
	begun   time.Duration // of the last stamp or reading
	stamped int64         // the generation of the last stamp that was begun; 0 when the last thing was a reading
	filled  int64         // the generation whose primary has filled the gaps before it
	filling bool
}

// NewHeartbeat makes a Heartbeat.
func NewHeartbeat(o HeartbeatOptions) *Heartbeat { return &Heartbeat{o: o, wake: newSignal()} }

// Wake makes it look at once whether the role has changed.
func (h *Heartbeat) Wake() { h.wake.set() }

// State is what is known by the heartbeat; nil while it is disabled.
func (h *Heartbeat) State() *protocol.Heartbeat {
	now := h.o.Clock.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.enabled {
		return nil
	}
	out := h.state
	if out.LagMillis != nil {
		// It grows until it is read again.
		out.LagMillis = new(*out.LagMillis + (now - h.readAt).Milliseconds())
	}
	if h.since != 0 {
		out.WaitingMillis = (now - h.since).Milliseconds()
	}
	return &out
}

// Run goes on until ctx ends.
func (h *Heartbeat) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		timer := time.NewTimer(h.beat(ctx))
		select {
		case <-ctx.Done():
		case <-h.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	h.running.Wait()
	return nil
}

// beat does what is due, and returns when to look again. The first stamp of a primary is due at once: until it arrives, its
// replicas are measured by what its predecessor wrote.
func (h *Heartbeat) beat(ctx context.Context) time.Duration {
	c := h.o.Cluster()
	if c == nil || !c.HeartbeatEnabled() {
		h.set(func() { h.enabled, h.state = false, protocol.Heartbeat{} })
		return api.DefaultHeartbeatInterval
	}
	r := h.o.Report()
	generation := int64(0)
	if stamps(r) {
		generation = r.Role.Generation
	}
	now := h.o.Clock.Now()
	h.mu.Lock()
	h.enabled = true
	if r.MySQL == nil {
		h.state = protocol.Heartbeat{}
	}
	left := c.HeartbeatInterval() - (now - h.begun)
	due := left <= 0 || h.begun == 0 || generation != h.stamped
	if due {
		h.begun, h.stamped = now, generation
	}
	h.mu.Unlock()
	switch {
	case !due:
		return left
	case generation != 0:
		h.stamp(ctx, generation)
	case r.MySQL != nil:
		h.read(ctx)
	}
	return c.HeartbeatInterval()
}

// stamps tells whether an instance is one that stamps.
func stamps(r protocol.Report) bool {
	return r.Role.Name == role.Primary && r.MySQL.Writable()
}

func (h *Heartbeat) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

// stamp begins to write one, unless the last one is still being written.
func (h *Heartbeat) stamp(ctx context.Context, generation int64) {
	h.mu.Lock()
	busy := h.writing
	if h.since == 0 {
		h.since = h.o.Clock.Now()
	}
	h.writing = true
	h.state.LagMillis = nil
	h.mu.Unlock()
	if busy {
		return
	}
	h.running.Go(func() {
		err := h.o.Server.Stamp(ctx, generation)
		if err == nil {
			h.fill(ctx, generation)
		} else if ctx.Err() != nil || errors.Is(err, mysql.ErrReadOnly) || !stamps(h.o.Report()) {
			// It ends, or its role does.
			err = nil
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.writing = false
		if errors.Is(err, mysql.ErrUnacknowledged) {
			return // it goes on waiting, here and not in the server
		}
		h.since = 0
		text := ""
		if err != nil {
			text = err.Error()
			if h.state.StampError == "" {
				h.o.Log.Error(err, "the heartbeat cannot be written")
			}
		}
		h.state.StampError = text
	})
}

// fill begins to write the stamps that the primaries before this one have left out, once in a generation.
func (h *Heartbeat) fill(ctx context.Context, generation int64) {
	h.mu.Lock()
	due := h.filled != generation && !h.filling
	h.filling = h.filling || due
	h.mu.Unlock()
	if !due {
		return
	}
	h.running.Go(func() {
		n, err := h.o.Server.FillStamps(ctx)
		h.set(func() { h.filling = false })
		switch {
		case err == nil:
			h.set(func() { h.filled = generation })
			if n > 0 {
				h.o.Log.V(1).Info("filled the gaps in the numbers of the heartbeat", "numbers", n)
			}
		case ctx.Err() == nil:
			h.o.Log.V(1).Info("the gaps in the numbers of the heartbeat are filled later", "reason", err.Error())
		}
	})
}

// read takes the age of the newest stamp of the latest primary that this server has applied. Until a new primary's first
// stamp arrives that is its predecessor's.
func (h *Heartbeat) read(ctx context.Context) {
	at := h.o.Clock.Now()
	all, err := h.o.Server.Stamps(ctx)
	if err != nil && ctx.Err() == nil {
		h.o.Log.V(1).Info("cannot read the heartbeat", "error", err.Error())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readAt, h.state = at, protocol.Heartbeat{}
	if !h.writing {
		h.since = 0
	}
	if len(all) > 0 {
		latest := slices.MaxFunc(all, func(a, b mysql.Stamp) int {
			return cmp.Or(cmp.Compare(a.Generation, b.Generation), a.At.Compare(b.At))
		})
		h.state.LagMillis = new(max(time.Since(latest.At).Milliseconds(), 0))
	}
}
