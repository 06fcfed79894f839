package sim

import "time"

// ledger is what clients did and were told.
type ledger struct {
	initial []entry
	next    int
	// acked is what clients were told is stored, lastAck when they were told last.
	acked   content
	lastAck time.Duration
	// lineage is what the current primary had when it was promoted and everything that it had since.
	lineage content
	// openedIn is the generation in which each instance last opened for writes.
	openedIn [MaxInstances]int64
}

func (l *ledger) init(*World) {
	for n := range uint8(3) {
		e := entry{id: txn(n), number: n + 1}
		l.initial = append(l.initial, e)
		l.acked.add(e.id)
		l.lineage.add(e.id)
	}
	l.next = len(l.initial)
	l.openedIn[0] = 1
	l.lastAck = -1
}

// start is what everybody has at the start.
func (l *ledger) start() numbers { return numbers{3} }

// fresh is a transaction that never was; false when there is none left.
func (l *ledger) fresh() (txn, bool) {
	if l.next >= maxTxns {
		return 0, false
	}
	l.next++
	return txn(l.next - 1), true
}

// client tries to write to every instance, and again in a while.
func (w *World) client() {
	for _, i := range w.inst {
		if i.srv.accepting() && !i.srv.offline && !w.waking(i.n) {
			w.after(i.srv.p, 0, func() {
				if i.srv.accepting() && i.srv.waiting < 3 {
					i.srv.write()
				}
			})
		}
	}
	w.after(nil, w.between(50*time.Millisecond, 1500*time.Millisecond), w.client)
}

// waking tells that a machine has just gone on after a pause: the watchdog acts before anything else.
func (w *World) waking(n int) bool { return w.t < w.nodes[n].awake+5*time.Millisecond }
