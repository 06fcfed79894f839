package sim

import "time"

// proc is one process: what it has started goes on only while it lives, and waits while it is paused.
type proc struct {
	name string
	node int
	// boot counts the lives: what an earlier life has started is dropped.
	boot   int
	alive  bool
	paused bool
	held   []event
}

// event is something that happens at a moment of the world. Without a process it happens in any case.
type event struct {
	at   time.Duration
	seq  int
	p    *proc
	boot int
	do   func()
}

func (e *event) before(f *event) bool {
	if e.at != f.at {
		return e.at < f.at
	}
	return e.seq < f.seq
}

// queue is a heap of events by time, then by order of their making.
type queue struct {
	list []event
	seq  int
}

func (q *queue) push(e event) {
	q.list = append(q.list, e)
	n := len(q.list) - 1
	for n > 0 {
		up := (n - 1) / 2
		if !q.list[n].before(&q.list[up]) {
			break
		}
		q.list[n], q.list[up] = q.list[up], q.list[n]
		n = up
	}
}

func (q *queue) pop() event {
	top := q.list[0]
	last := len(q.list) - 1
	q.list[0] = q.list[last]
	q.list[last] = event{}
	q.list = q.list[:last]
	n := 0
	for {
		least := n
		for _, c := range [2]int{2*n + 1, 2*n + 2} {
			if c < last && q.list[c].before(&q.list[least]) {
				least = c
			}
		}
		if least == n {
			return top
		}
		q.list[n], q.list[least] = q.list[least], q.list[n]
		n = least
	}
}

// after makes something happen d from now by the clock of the world. A nil process is the world itself.
func (w *World) after(p *proc, d time.Duration, do func()) {
	e := event{at: w.t + max(d, 0), seq: w.q.seq, p: p, do: do}
	w.q.seq++
	if p != nil {
		e.boot = p.boot
	}
	w.q.push(e)
}

// later makes something happen d from now by the clock of the process's own machine.
func (w *World) later(p *proc, d time.Duration, do func()) {
	w.after(p, w.nodes[p.node].real(d), do)
}

// step takes the next event; false when there is none before the given time.
func (w *World) step(until time.Duration) bool {
	if len(w.q.list) == 0 || w.q.list[0].at > until {
		w.t = until
		return false
	}
	e := w.q.pop()
	w.t = e.at
	if e.p != nil {
		if e.boot != e.p.boot || !e.p.alive {
			return true
		}
		if e.p.paused {
			e.p.held = append(e.p.held, e)
			return true
		}
	}
	w.events++
	e.do()
	w.check()
	return true
}

// start begins a new life of a process.
func (p *proc) start() { p.boot, p.alive, p.paused, p.held = p.boot+1, true, false, nil }

// kill ends it.
func (p *proc) kill() { p.boot, p.alive, p.paused, p.held = p.boot+1, false, false, nil }

// resume lets a paused process go on with what has become due meanwhile, in its order.
func (w *World) resume(p *proc) {
	p.paused = false
	held := p.held
	p.held = nil
	for _, e := range held {
		e.at = w.t
		w.q.push(e)
	}
}
