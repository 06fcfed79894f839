package sim

import (
	"fmt"
	"time"

	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/instance/protocol"
)

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
		if o.hears(i) {
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
