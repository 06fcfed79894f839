package sim

import "time"

// setCut opens or closes a way between two ends.
func (w *World) setCut(from, to int, cut bool) { w.net.cut[from][to] = cut }

func (w *World) strikeNetwork(f Fault) func() {
	a, b, op, server := f.A, f.B, w.net.operator, w.net.api
	switch f.Kind {
	case CutInstances:
		return w.cut([][2]int{{a, b}, {b, a}})
	case CutOneWay:
		return w.cut([][2]int{{a, b}})
	case CutOperator:
		return w.cut([][2]int{{a, op}, {op, a}})
	case CutFromOperator:
		return w.cut([][2]int{{op, a}})
	case CutAPI:
		w.gone(a)
		return w.cut([][2]int{{a, server}, {server, a}})
	case CutFromAPI:
		return w.cut([][2]int{{server, a}})
	case CutOperatorAPI:
		return w.cut([][2]int{{op, server}, {server, op}})
	case Isolate:
		var all [][2]int
		for n := range server + 1 {
			if n != a {
				all = append(all, [2]int{a, n}, [2]int{n, a})
			}
		}
		w.gone(a)
		return w.cut(all)
	case APIOutage:
		w.net.apiDown = true
		return func() {
			w.net.apiDown = false
			for end := range op + 1 {
				w.rewatch(end)
			}
		}
	case StaleInstance:
		w.inst[a].mgr.stale = true
		return func() { w.inst[a].mgr.stale = false; w.rewatch(a) }
	case StaleOperator:
		w.op.stale = true
		return func() { w.op.stale = false; w.rewatch(op) }
	default:
		return w.strikePace(f)
	}
}

// strikePace makes something slow, or lets answers be lost.
func (w *World) strikePace(f Fault) func() {
	a, op := f.A, w.net.operator
	switch f.Kind {
	case SlowInstance:
		return w.late(a)
	case SlowOperator:
		return w.late(op)
	case LossyInstance:
		w.net.lossy[a] = 50
		return func() { w.net.lossy[a] = 0 }
	case SlowApplier:
		s := w.inst[a].srv
		s.lateApply = 3 * time.Second
		return func() { s.lateApply = 0 }
	case SlowReceiver:
		s := w.inst[a].srv
		s.lateReceive = 2 * time.Second
		return func() { s.lateReceive = 0 }
	case LossyOperator:
		w.net.lossy[op] = 50
		return func() { w.net.lossy[op] = 0 }
	default:
		panic("a fault that the model does not know: " + string(f.Kind))
	}
}

func (w *World) late(end int) func() {
	w.net.slow[end] = w.between(100*time.Millisecond, 20*time.Second)
	return func() { w.net.slow[end] = 0 }
}

// cut closes ways; its repair opens them and makes up for what was missed.
func (w *World) cut(ways [][2]int) func() {
	for _, c := range ways {
		w.setCut(c[0], c[1], true)
		for _, end := range c {
			if end < w.net.operator && (c[0] == w.net.operator || c[1] == w.net.operator) {
				w.op.streamLost(end)
			}
		}
	}
	return func() {
		w.noteFlows()
		for _, c := range ways {
			w.setCut(c[0], c[1], false)
		}
		for _, c := range ways {
			switch {
			case c[0] == w.net.api && c[1] <= w.net.operator:
				w.rewatch(c[1])
			case c[1] == w.net.api && c[0] <= w.net.operator:
				w.rewatch(c[0])
			}
		}
		w.mendFlows()
	}
}

// brokenFlows lets replicas notice in time that nothing comes any more.
func (w *World) brokenFlows() {
	for _, i := range w.inst {
		s := i.srv
		if s.connected == 0 || w.flowing(s.n, s.source) {
			continue
		}
		connection := s.connected
		w.after(s.p, w.between(5*time.Second, 30*time.Second), func() {
			if s.connected == connection && !w.flowing(s.n, s.source) {
				s.connected = 0
				i.mgr.noticed()
				s.retry()
			}
		})
	}
}

// mendFlows lets what was held up arrive.
func (w *World) mendFlows() {
	for _, i := range w.inst {
		if s := i.srv; s.connected > 0 && w.flowing(s.n, s.source) {
			s.receive()
		}
	}
}

// primaryNow is the current primary, for faults that look for it.
func (w *World) primaryNow() int { return ordinal(w.api.cluster.c.Status.CurrentPrimary) }
