package sim

import (
	"slices"
	"strconv"
	"time"

	"cnmsql.co/operator/instance/protocol"
)

const (
	refreshTimeout = 2 * time.Second
	operatorCall   = 10 * time.Second
	soon           = 100 * time.Millisecond
	// silentAfter is how long nothing is heard from an instance before it counts as silent.
	silentAfter = 3 * protocol.WatchHeartbeat
)

// operator is the topology reconciler: caches, streams, one pass at a time.
type operator struct {
	w *World
	p *proc
	// stale tells that its watches stand still.
	stale bool

	cluster    *stored
	lease      *leaseObject
	leaseSince time.Duration
	pods       [MaxInstances]*podObject
	podAt      [MaxInstances]int
	sights     [MaxInstances]sight

	busy, again bool
	timer       int
	backoff     time.Duration
	attempts    int
}

// sight is what the operator knows of one instance.
type sight struct {
	report  *protocol.Report
	arrived time.Duration
	asked   bool
	// stream numbers the connections; open tells that one is there.
	stream int
	open   bool
}

func newOperator(w *World) *operator {
	return &operator{w: w, p: &proc{name: "operator", node: len(w.nodes) - 1}}
}

// boot begins a new life: all that it knew is gone.
func (o *operator) boot() {
	attempts := o.attempts
	*o = operator{w: o.w, p: o.p, stale: o.stale, attempts: attempts}
	o.p.start()
	o.w.after(o.p, o.w.between(10*time.Millisecond, 200*time.Millisecond), o.list)
}

func (o *operator) say(format string, args ...any) { o.w.say("operator", format, args...) }

func (o *operator) now() time.Duration { return o.w.now(o.p) }

// list reads all objects anew.
func (o *operator) list() {
	w := o.w
	if !w.net.both(w.net.operator, w.net.api) || o.stale {
		w.after(o.p, time.Second, o.list)
		return
	}
	o.sawCluster(w.api.cluster)
	o.sawLease(w.api.lease)
	for i := range w.inst {
		o.sawPod(i, w.api.version, w.api.pods[i])
	}
	o.wake()
}

func (o *operator) sawCluster(c *stored) {
	if o.cluster != nil && c.version <= o.cluster.version {
		return
	}
	before := o.cluster
	o.cluster = c
	if before == nil {
		o.wake()
		return
	}
	a, b := &before.c.Status, &c.c.Status
	if a.CurrentPrimary != b.CurrentPrimary || a.CurrentPrimaryGeneration != b.CurrentPrimaryGeneration || a.TargetPrimary != b.TargetPrimary || !slices.Equal(a.FencedInstances, b.FencedInstances) {
		o.wake()
	}
}

func (o *operator) sawLease(l *leaseObject) {
	if o.lease != nil && l.version <= o.lease.version {
		return
	}
	wake := o.lease == nil || o.lease.holder != l.holder || o.lease.handoffAttempt != l.handoffAttempt
	o.lease, o.leaseSince = l, o.now()
	if wake {
		o.wake()
	}
}

func (o *operator) sawPod(i, version int, pod *podObject) {
	if version <= o.podAt[i] {
		return
	}
	before := o.pods[i]
	o.pods[i], o.podAt[i] = pod, version
	switch {
	case pod == nil:
		o.sights[i] = sight{stream: o.sights[i].stream + 1}
	case before == nil || before.uid != pod.uid || !o.sights[i].open:
		if before != nil && before.uid != pod.uid {
			o.sights[i] = sight{stream: o.sights[i].stream + 1}
		}
		o.dial(i)
	}
	o.wake()
}

// dial opens a stream to an instance, and tries again each second.
func (o *operator) dial(i int) {
	s := &o.sights[i]
	if s.open {
		return
	}
	w := o.w
	s.stream++
	stream := s.stream
	peer := w.inst[i].mgr
	var r *protocol.Report
	w.call(o.p, w.net.operator, i, peer.p, 2*time.Second, func() bool {
		r = peer.report()
		peer.told = outlineOf(r)
		return true
	}, func(ok bool) {
		if s.stream != stream {
			return
		}
		news := ok || !s.asked
		s.asked = true
		if ok && o.pods[i] != nil && r.PodUID == o.pods[i].uid {
			s.open = true
			s.report, s.arrived = r, o.now()
			if !o.hears(i) {
				// The answer outlived its sender.
				o.streamLost(i)
			}
		} else if o.pods[i] != nil {
			w.later(o.p, time.Second, func() {
				if s.stream == stream {
					o.dial(i)
				}
			})
		}
		if news {
			o.wake()
		}
	})
}

// heard takes a report from a stream.
func (o *operator) heard(i int, r *protocol.Report) {
	s := &o.sights[i]
	if !s.open || r.Boot != s.report.Boot || r.Sequence <= s.report.Sequence {
		return
	}
	wake := worthAPass(s.report, r)
	s.report, s.arrived = r, o.now()
	if wake {
		o.wake()
	}
}

// streamLost ends the stream of an instance whose manager has gone, or that was not heard for long.
func (o *operator) streamLost(i int) {
	s := &o.sights[i]
	if !s.open {
		return
	}
	stream := s.stream
	late := o.w.hop()
	if !o.w.net.both(i, o.w.net.operator) || o.w.nodes[i].down || o.w.nodes[i].paused || o.w.inst[i].mgr.p.paused {
		late = silentAfter
	}
	o.w.after(o.p, late, func() {
		if s.stream != stream || !s.open {
			return
		}
		if late == silentAfter && o.hears(i) {
			return
		}
		s.open, s.report = false, nil
		o.say("%s is silent", name(i))
		o.wake()
		o.dial(i)
	})
}

// hears tells that the stream to an instance delivers: one of a manager that has gone is never taken up by the next.
func (o *operator) hears(i int) bool {
	s := &o.sights[i]
	return s.open && s.report.Boot == strconv.Itoa(o.w.inst[i].mgr.p.boot) && o.w.streams(i)
}

// streams tells that an instance's manager can be heard.
func (w *World) streams(i int) bool {
	m := w.inst[i].mgr
	return w.net.both(i, w.net.operator) && m.p.alive && !m.p.paused && !w.nodes[i].down
}

// reachable makes the operator try an instance that has come back.
func (o *operator) reachable(i int) {
	o.w.after(o.p, o.w.between(10*time.Millisecond, time.Second), func() { o.dial(i) })
}

func (o *operator) wake() {
	if !o.p.alive {
		return
	}
	if o.busy {
		o.again = true
		return
	}
	o.busy, o.again = true, false
	o.timer++
	o.w.after(o.p, o.w.between(time.Millisecond, 5*time.Millisecond), o.pass)
}

// rest ends a pass; zero is for never.
func (o *operator) rest(pause time.Duration) {
	o.busy = false
	o.timer++
	if o.again {
		o.wake()
		return
	}
	if pause <= 0 {
		return
	}
	timer := o.timer
	o.w.later(o.p, pause, func() {
		if o.timer == timer {
			o.wake()
		}
	})
}

func (o *operator) trouble() {
	o.backoff = min(max(2*o.backoff, soon), 10*time.Second)
	o.rest(o.backoff)
}
