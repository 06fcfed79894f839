package sim

import (
	"fmt"
	"reflect"
	"slices"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
)

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
		o.w.decided(d)
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
	case core.ClearAcceptLoss:
		call(func() bool { return w.api.clearAnnotation(api.AnnotationAcceptLoss, a.Value) })
	default:
		panic(fmt.Sprintf("the model has no action %q", a.Kind))
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
