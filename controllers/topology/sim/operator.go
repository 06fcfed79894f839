package sim

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
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
	if a.CurrentPrimary != b.CurrentPrimary || a.CurrentPrimaryGeneration != b.CurrentPrimaryGeneration || a.TargetPrimary != b.TargetPrimary {
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
	if !s.open || s.report != nil && r.Sequence <= s.report.Sequence {
		return
	}
	s.report, s.arrived = r, o.now()
	o.wake()
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
		if late == silentAfter && o.w.streams(i) {
			return
		}
		s.open, s.report = false, nil
		o.say("%s is silent", name(i))
		o.wake()
		o.dial(i)
	})
}

// streams tells that an instance's stream delivers.
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

// pass observes, decides, commits and acts.
func (o *operator) pass() {
	o.w.passes++
	if o.cluster == nil || o.lease == nil {
		o.rest(soon)
		return
	}
	read := o.cluster
	d := o.w.rules.Core(o.snapshot(nil))
	if !d.Refresh {
		o.carryOut(read, d)
		return
	}
	o.refresh(func(lease *leaseObject, reports []*protocol.Report, ok bool) {
		if !ok {
			o.trouble()
			return
		}
		read = o.cluster
		d := o.w.rules.Core(o.snapshot(&answers{lease, reports}))
		if d.Refresh {
			o.rest(soon)
			return
		}
		o.carryOut(read, d)
	})
}

// answers are what instances said after the Lease had been looked at.
type answers struct {
	lease   *leaseObject
	reports []*protocol.Report
}

// refresh looks at the Lease in the API server itself, then asks every instance.
func (o *operator) refresh(then func(*leaseObject, []*protocol.Report, bool)) {
	w := o.w
	var l *leaseObject
	w.call(o.p, w.net.operator, w.net.api, nil, operatorCall, func() bool { l = w.api.lease; return true }, func(ok bool) {
		if !ok {
			then(nil, nil, false)
			return
		}
		o.sawLease(l)
		reports := make([]*protocol.Report, len(w.inst))
		left := len(w.inst)
		for i := range w.inst {
			peer := w.inst[i].mgr
			var r *protocol.Report
			w.call(o.p, w.net.operator, i, peer.p, refreshTimeout, func() bool { r = peer.fresh(); return true }, func(ok bool) {
				if ok {
					reports[i] = r
				}
				if left--; left == 0 {
					then(l, reports, true)
				}
			})
		}
	})
}

// snapshot is what the rules look at.
func (o *operator) snapshot(asked *answers) core.Snapshot {
	w := o.w
	o.attempts++
	now := o.now()
	s := core.Snapshot{
		Now: w.date(o.p), NewAttempt: fmt.Sprintf("attempt-%d", o.attempts), Cluster: o.cluster.c,
		Lease: core.Lease{
			Known: true, Holder: o.lease.holder, Unchanged: now - o.leaseSince,
			Handoff: o.lease.handoff, HandoffAttempt: o.lease.handoffAttempt,
		},
		Instances: make([]core.Instance, 0, len(w.inst)),
	}
	w.rules.lease(w, o, &s.Lease)
	s.Fresh = asked != nil && asked.lease.holder == o.lease.holder && asked.lease.renewals == o.lease.renewals && asked.lease.transitions == o.lease.transitions
	for i := range w.inst {
		s.Instances = append(s.Instances, o.instance(i, asked, now))
	}
	return s
}

func (o *operator) instance(i int, asked *answers, now time.Duration) core.Instance {
	in := core.Instance{
		Name: name(i), Ordinal: int32(i + 1), CertificateReady: true, // #nosec G115 -- at most five
		Volumes: volumes[i][:],
	}
	pod := o.pods[i]
	if pod == nil {
		return in
	}
	in.Pod = &core.Pod{UID: pod.uid, Terminating: pod.terminating, Ready: pod.ready, Running: pod.running, Role: pod.role, Routable: pod.routable}
	s := &o.sights[i]
	in.Report, in.Asked = s.report, s.asked
	if s.report != nil {
		in.Age = now - s.arrived
		if o.w.streams(i) {
			// A report is told again now and then though nothing has changed.
			in.Age = min(in.Age, o.w.between(0, protocol.WatchHeartbeat))
		}
	}
	if asked == nil {
		return in
	}
	if r := asked.reports[i]; r != nil && r.PodUID == pod.uid {
		in.Report, in.Age, in.Asked = r, min(in.Age, time.Second), true
		return in
	}
	if in.Report != nil && in.Report.MySQL != nil {
		silent := *in.Report
		silent.MySQL = nil
		in.Report = &silent
	}
	return in
}

var volumes = [MaxInstances][1]core.Volume{{{Name: "c1-1"}}, {{Name: "c1-2"}}, {{Name: "c1-3"}}, {{Name: "c1-4"}}, {{Name: "c1-5"}}}

// carryOut does what need not be committed, commits, then acts.
func (o *operator) carryOut(read *stored, d core.Decision) {
	if len(d.First) == 0 {
		o.commit(read, d)
		return
	}
	o.proveFresh(read, func(ok bool) {
		if !ok {
			o.rest(soon)
			return
		}
		o.act(d.First, func(ok bool) {
			if !ok {
				o.rest(soon)
				return
			}
			o.commit(read, d)
		})
	})
}

// proveFresh makes sure that the Cluster that was read is the present one.
func (o *operator) proveFresh(read *stored, then func(bool)) {
	w := o.w
	version := 0
	w.call(o.p, w.net.operator, w.net.api, nil, operatorCall, func() bool { version = w.api.cluster.version; return true }, func(ok bool) {
		then(ok && version == read.version)
	})
}

// commit writes what was decided into the status, if that is anything new, then acts.
func (o *operator) commit(read *stored, d core.Decision) {
	act := func() {
		if len(d.Actions) == 0 {
			o.backoff = 0
			o.rest(d.Recheck)
			return
		}
		o.act(d.Actions, func(ok bool) {
			if !ok {
				o.trouble()
				return
			}
			o.backoff = 0
			o.rest(d.Recheck)
		})
	}
	if same(&read.c.Status, &d.Status) {
		if len(d.Actions) == 0 {
			act()
			return
		}
		o.proveFresh(read, func(ok bool) {
			if !ok {
				o.rest(soon)
				return
			}
			act()
		})
		return
	}
	w := o.w
	if w.tell != nil {
		o.say("decides: %s (%s) %s %s", d.Rule, d.Status.PhaseReason, moved(&read.c.Status, &d.Status), actions(d))
	}
	stored := false
	w.call(o.p, w.net.operator, w.net.api, nil, operatorCall, func() bool {
		from := read
		if w.rules.CommitBlindly {
			from = w.api.cluster
		}
		_, stored = w.api.putCluster(from, &d.Status, "operator")
		return true
	}, func(ok bool) {
		switch {
		case !ok:
			o.trouble()
		case !stored:
			o.rest(soon)
		default:
			act()
		}
	})
}

// same tells that two statuses are one.
func same(a, b *api.ClusterStatus) bool { return reflect.DeepEqual(a, b) }

// act carries out actions in order, up to the first that fails.
func (o *operator) act(list []core.Action, then func(bool)) {
	if len(list) == 0 {
		then(true)
		return
	}
	o.do(list[0], func(ok bool) {
		if !ok {
			then(false)
			return
		}
		o.act(list[1:], then)
	})
}

func (o *operator) do(a core.Action, then func(bool)) {
	w, i := o.w, ordinal(a.Instance)
	good := false
	call := func(serve func() bool) {
		w.call(o.p, w.net.operator, w.net.api, nil, operatorCall, func() bool { good = serve(); return true }, func(ok bool) { then(ok && good) })
	}
	switch a.Kind {
	case core.CreateVolumes:
		then(true)
	case core.CreatePod:
		call(func() bool { return w.createPod(i) })
	case core.DeletePod:
		o.say("deletes the Pod of %s: %s", a.Instance, a.Why)
		if w.healed && strings.HasPrefix(a.Why, "fencing a primary") {
			w.fencings++
		}
		call(func() bool { w.deletePod(i, a.PodUID); return true })
	case core.LabelPod:
		if pod := o.pods[i]; pod == nil || pod.uid != a.PodUID {
			then(false)
			return
		}
		label := func() {
			call(func() bool {
				return w.api.patchPod(i, a.PodUID, func(p *podObject) { p.role, p.routable = a.Role, a.Routable })
			})
		}
		if a.Role != api.RolePrimary || w.rules.LabelBlindly {
			label()
			return
		}
		other := false
		w.call(o.p, w.net.operator, w.net.api, nil, operatorCall, func() bool {
			other = slices.ContainsFunc(w.api.pods[:], func(p *podObject) bool { return p != nil && p.instance != i && p.role == api.RolePrimary })
			return true
		}, func(ok bool) {
			if !ok || other {
				then(false)
				return
			}
			label()
		})
	case core.RecordFailover:
		call(func() bool { w.api.annotate(a.Record.Annotations()); return true })
	default:
		// What a person has accepted, and objects that nobody's safety rests on, are not modelled.
		then(true)
	}
}

// createPod makes a Pod where there is none.
func (w *World) createPod(i int) bool {
	if w.api.pods[i] == nil {
		w.api.putPod(i, &podObject{instance: i, uid: w.api.uid(i)})
	}
	return true
}

// deletePod asks for the end of the Pod of this UID.
func (w *World) deletePod(i int, uid string) {
	w.api.patchPod(i, uid, func(p *podObject) { p.terminating = true })
}
