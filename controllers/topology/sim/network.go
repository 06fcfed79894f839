package sim

import "time"

// network says who reaches whom. Ends are instances by number, then the operator, then the API server.
type network struct {
	operator, api int
	// cut[a][b] tells that nothing gets from a to b.
	cut [MaxInstances + 2][MaxInstances + 2]bool
	// slow is how late requests of an end may be, lossy the percentage of its answers that are lost.
	slow  [MaxInstances + 2]time.Duration
	lossy [MaxInstances + 2]int
	// apiDown tells that the API server does not answer anybody.
	apiDown bool
}

func (n *network) init(instances int) { n.operator, n.api = instances, instances+1 }

func (n *network) passes(from, to int) bool {
	return !n.cut[from][to] && (!n.apiDown || from != n.api && to != n.api)
}

// both tells that two ends can keep a connection.
func (n *network) both(a, b int) bool { return n.passes(a, b) && n.passes(b, a) }

// hop is how long a message takes.
func (w *World) hop() time.Duration { return w.between(200*time.Microsecond, 4*time.Millisecond) }

// call sends a request and hears of its answer, once: with false when none came in time. serve runs at the
// other end, as a part of its process, when the request arrives, also after the caller gave up or died. It
// returns false when it does not answer.
func (w *World) call(p *proc, from, to int, server *proc, timeout time.Duration, serve func() bool, done func(bool)) { //nolint:revive // a call has two ends, two processes, a bound and two outcomes
	answered := false
	finish := func(ok bool) {
		if !answered {
			answered = true
			done(ok)
		}
	}
	late := w.hop()
	if s := w.net.slow[from]; s > 0 && w.chance(30) {
		late += w.between(0, s)
	}
	w.later(p, timeout, func() { finish(false) })
	if !w.net.passes(from, to) {
		return
	}
	boot := p.boot
	w.after(server, late, func() {
		if !w.net.passes(from, to) || !serve() || !w.net.passes(to, from) {
			return
		}
		if l := w.net.lossy[from]; l > 0 && w.chance(l) {
			return
		}
		w.after(nil, w.hop(), func() {
			if p.boot == boot && p.alive {
				w.after(p, 0, func() { finish(true) })
			}
		})
	})
}
