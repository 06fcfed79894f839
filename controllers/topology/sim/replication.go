package sim

import "time"

// sendsFrom tells that this server has a connection to that source.
func (s *server) sendsFrom(source int) bool {
	return s.configured && s.io && s.connected > 0 && s.source == source
}

// flowing tells that what a source sends arrives at a replica.
func (w *World) flowing(replica, source int) bool {
	r, s := w.inst[replica].srv, w.inst[source].srv
	return w.net.both(replica, source) && r.p.alive && s.p.alive && s.ready && !s.p.paused && !r.p.paused
}

// noteFlows notes, before links or processes change, what was heard until now.
func (w *World) noteFlows() {
	for _, i := range w.inst {
		if s := i.srv; s.configured && s.connected > 0 && w.flowing(i.n, s.source) {
			s.heard = w.t
		}
	}
}

// connect tries to reach the source, and again each second.
func (s *server) connect() {
	if !s.io || s.connected > 0 {
		return
	}
	w := s.w
	if !w.flowing(s.n, s.source) {
		s.retry()
		return
	}
	if w.ahead(s) {
		// The source asks for what it does not have: error 1236.
		w.say(name(s.n), "stops receiving from %s: it holds what the source does not", name(s.source))
		s.io, s.ioErrno = false, 1236
		w.inst[s.n].mgr.noticed()
		return
	}
	s.connections++
	s.connected, s.pos, s.heard = s.connections, 0, w.t
	w.attachedTo(s)
	w.inst[s.n].mgr.noticed()
	s.receive()
}

func (s *server) retry() {
	epoch := s.connections
	s.w.after(s.p, time.Second, func() {
		if s.io && s.connected == 0 && s.connections == epoch {
			s.connect()
		}
	})
}

// ahead tells that a replica holds transactions of the source's own that the source lacks: the only ones that
// a source notices.
func (w *World) ahead(s *server) bool {
	source := w.inst[s.source].srv
	return s.held()[s.source] > source.numbers(source.log)[s.source]
}

// disconnected ends the connections to a source whose process has gone, and those of a replica that has.
func (w *World) disconnected(n int) {
	for _, i := range w.inst {
		s := i.srv
		if s.connected > 0 && s.source == n && i.n != n {
			w.hangUp(s)
		}
	}
}

// hangUp lets a replica notice that its connection has ended: at once where the other machine says so, else
// when nothing was heard for long.
func (w *World) hangUp(s *server) {
	connection := s.connected
	late := w.between(time.Millisecond, 20*time.Millisecond)
	if !w.net.both(s.n, s.source) || w.nodes[s.source].down {
		late = w.between(5*time.Second, 30*time.Second)
	}
	w.after(s.p, late, func() {
		if s.connected != connection {
			return
		}
		s.connected = 0
		w.inst[s.n].mgr.noticed()
		s.retry()
	})
}

// kick sends what is new to everybody who is connected.
func (s *server) kick() {
	for _, i := range s.w.inst {
		if i.srv.sendsFrom(s.n) {
			i.srv.receive()
		}
	}
}

// receive takes everything that the source has and this server has not, as its log has it when it arrives.
func (s *server) receive() {
	w, connection := s.w, s.connected
	late := w.hop()
	if s.lateReceive > 0 {
		late = w.between(0, s.lateReceive)
	}
	w.after(s.p, late, func() {
		source := w.inst[s.source].srv
		if s.connected != connection || connection == 0 || !w.flowing(s.n, s.source) || s.full {
			return
		}
		have := s.held()
		got := 0
		for ; s.pos < len(source.log); s.pos++ {
			e := source.log[s.pos]
			if e.number > have[e.source] {
				s.relay = append(s.relay, e)
				got++
			}
		}
		s.heard = w.t
		s.acknowledge(source)
		if got > 0 {
			s.apply()
		}
	})
}

// acknowledge tells the source how far this server holds its log.
func (s *server) acknowledge(source *server) {
	if !s.replicaOn {
		return
	}
	w, n, pos := s.w, s.n, s.pos
	w.after(source.p, w.hop(), func() {
		if w.flowing(n, source.n) {
			source.acked[n] = max(source.acked[n], pos)
			source.commit()
		}
	})
}

// apply executes the relay log, a little later. A server that is still a source of semi-synchronous replication
// waits for acknowledgements of its own.
func (s *server) apply() {
	if s.applying || !s.sql || s.sourceOn || s.full || len(s.relay) == 0 {
		return
	}
	s.applying = true
	late := s.w.between(time.Millisecond, 10*time.Millisecond)
	if s.lateApply > 0 || s.w.chance(3) {
		late = s.w.between(100*time.Millisecond, max(s.lateApply, time.Second))
	}
	s.w.after(s.p, late, func() {
		s.applying = false
		if !s.sql || s.sourceOn || s.full {
			return
		}
		have := s.numbers(s.log)
		for _, e := range s.relay {
			if e.number > have[e.source] {
				s.append(e)
			}
		}
		s.relay = nil
		s.kick()
	})
}

// startReplica starts both threads, or the applier alone.
func (s *server) startReplica(receiver bool) {
	s.sql = true
	if receiver && !s.io {
		s.io, s.ioErrno = true, 0
		s.connect()
	}
	s.apply()
}

func (s *server) stopReceiver() {
	if s.connected > 0 && s.w.flowing(s.n, s.source) {
		s.heard = s.w.t
	}
	s.io, s.connected = false, 0
	s.connections++
}

// follow leaves the present source for another one, unless that would throw something away.
func (s *server) follow(source int, known numbers) bool {
	s.stopReceiver()
	if rest := !known.contains(s.held()); rest || !s.sql && len(s.relay) > 0 {
		return false
	}
	s.configured, s.source = true, source
	s.startReplica(true)
	return true
}
