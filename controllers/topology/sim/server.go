package sim

import (
	"time"

	"cnmsql.co/operator/instance/protocol"
)

// entry is a transaction in a binary log.
type entry struct {
	id     txn
	source uint8
	number uint8
}

// server is an instance's mysqld with its volume.
type server struct {
	w *World
	n int
	p *proc

	// ready tells that it accepts connections, readySince from when on, by its machine's date.
	ready      bool
	readySince time.Time
	// log is the binary log. The last waiting of it are not committed: they wait for acknowledgements.
	log     []entry
	waiting int
	// clients tells which of those still have a client that would be answered.
	clients int
	relay   []entry

	readOnly, offline bool
	// closing tells that SET GLOBAL super_read_only=ON waits for commits: no new one begins.
	closing    bool
	sourceOn   bool
	replicaOn  bool
	waitFor    int
	configured bool // replication is
	source     int
	io, sql    bool
	// connected is the number of the connection to the source, 0 for none; connections counts them.
	connected, connections int
	ioErrno                int
	// pos is up to where the source's log was looked through on this connection, heard when the source last sent
	// anything, acked up to where each replica has acknowledged this log.
	pos      int
	heard    time.Duration
	acked    [MaxInstances]int
	applying bool
	// full tells that the volume has no room: commits wait, and nothing more is received or applied. stuck tells that a
	// commit waits, which keeps the server from becoming read-only.
	full, stuck bool
	// lateApply and lateReceive are how late an applier and a receiver may be that are slow.
	lateApply, lateReceive time.Duration

	// ever is all content that was in this log at any time.
	ever content
}

// established is a server as an orderly start leaves it.
func (s *server) established() {
	w := s.w
	s.p.start()
	s.ready = true
	s.log = append(s.log, w.led.initial...)
	for _, e := range s.log {
		s.ever.add(e.id)
	}
	s.waitFor = max(1, w.cfg.SemiSync)
	if s.n == 0 {
		s.sourceOn = w.cfg.SemiSync > 0
		return
	}
	s.readOnly = true
	s.replicaOn = w.cfg.SemiSync > 0
	s.configured, s.source, s.io, s.sql = true, 0, true, true
	s.connect()
}

// accepting tells that an ordinary client can write now.
func (s *server) accepting() bool {
	return s.p.alive && s.ready && !s.p.paused && !s.readOnly && !s.closing
}

func (s *server) numbers(log []entry) numbers {
	var n numbers
	for _, e := range log {
		n[e.source] = max(n[e.source], e.number)
	}
	return n
}

func (s *server) executed() numbers { return s.numbers(s.log[:len(s.log)-s.waiting]) }

// held is everything that is in its logs.
func (s *server) held() numbers { return s.numbers(s.log).union(s.numbers(s.relay)) }

// contents is the same by content.
func (s *server) contents() content {
	var c content
	for _, e := range s.log {
		c.add(e.id)
	}
	for _, e := range s.relay {
		c.add(e.id)
	}
	return c
}

func (s *server) append(e entry) {
	s.log = append(s.log, e)
	s.ever.add(e.id)
	s.w.logged(s.n, e.id)
	s.w.inst[s.n].mgr.progress()
}

// write is a client's transaction.
func (s *server) write() {
	if s.full {
		s.stuck = true
		return
	}
	next := s.numbers(s.log)[s.n] + 1
	id, ok := s.w.led.fresh()
	if !ok {
		return
	}
	s.append(entry{id: id, source: uint8(s.n), number: next}) // #nosec G115 -- at most five
	s.w.say(name(s.n), "a client writes transaction %d", id)
	if s.sourceOn {
		s.waiting++
		s.clients++
	} else {
		s.w.acknowledged(s.n, id)
	}
	s.kick()
}

// fill takes the room away, empty gives it back.
func (s *server) fill() {
	s.full = true
	s.w.inst[s.n].mgr.noticed()
}

func (s *server) empty() {
	s.full, s.stuck = false, false
	s.w.inst[s.n].mgr.noticed()
	if s.p.alive && s.connected > 0 {
		s.receive()
	}
	s.apply()
}

// commit ends the wait of what enough replicas have acknowledged.
func (s *server) commit() {
	for s.waiting > 0 {
		at := len(s.log) - s.waiting
		n := 0
		for _, acked := range s.acked {
			if acked > at {
				n++
			}
		}
		if n < s.waitFor {
			return
		}
		s.commitOne(true)
	}
}

func (s *server) commitOne(answer bool) {
	id := s.log[len(s.log)-s.waiting].id
	s.waiting--
	if s.clients > s.waiting {
		s.clients = s.waiting
		if answer {
			s.w.acknowledged(s.n, id)
		}
	}
}

// crash ends the process. What the logs hold is kept, but for the last lost entries of the binary log.
func (s *server) crash(lost int) {
	if !s.p.alive {
		return
	}
	s.w.noteFlows()
	s.p.kill()
	s.ready, s.closing, s.applying, s.stuck = false, false, false, false
	s.waiting, s.clients, s.connected = 0, 0, 0
	s.log = s.log[:len(s.log)-min(lost, len(s.log))]
	if s.w.rules.LoseRelayLog {
		s.relay = nil
	}
	s.w.disconnected(s.n)
}

// boot starts the process: read-only, refusing clients, replicating from nobody.
func (s *server) boot(ready func()) {
	s.p.start()
	s.readOnly, s.offline = true, true
	s.io, s.sql, s.sourceOn, s.replicaOn = false, false, false, false
	s.ioErrno = 0
	s.acked = [MaxInstances]int{}
	s.w.after(s.p, s.w.between(500*time.Millisecond, 2*time.Second), func() {
		s.ready, s.readySince = true, s.w.date(s.p)
		s.w.say(name(s.n), "mysqld accepts connections, read-only")
		ready()
	})
}

// facts is what the server answers.
func (s *server) facts() *protocol.MySQL {
	w := s.w
	m := &protocol.MySQL{
		ServerUUID: uuid[s.n], ReadOnly: s.readOnly, SuperReadOnly: s.readOnly, Offline: s.offline,
		Executed: w.sets.of(s.executed()),
		SemiSync: protocol.SemiSync{
			SourceEnabled: s.sourceOn, ReplicaEnabled: s.replicaOn, SourceActive: s.sourceOn,
			ReplicaActive: s.replicaOn && s.connected > 0, WaitFor: s.waitFor, Waiting: s.waiting,
		},
	}
	for _, i := range w.inst {
		if i.srv.sendsFrom(s.n) && i.srv.replicaOn {
			m.SemiSync.Clients++
		}
	}
	if s.configured {
		m.Replication = s.replication()
	}
	return m
}

func (s *server) replication() *protocol.Replication {
	r := &protocol.Replication{
		SourceHost: hosts[s.source], SourceUUID: uuid[s.source], IORunning: s.io, Connected: s.connected > 0,
		SQLRunning: s.sql, IOErrno: s.ioErrno, Received: s.w.sets.of(s.numbers(s.log[:len(s.log)-s.waiting]).union(s.numbers(s.relay))),
		HeartbeatAgeMillis: -1,
	}
	if s.sendsFrom(s.source) && s.w.flowing(s.n, s.source) {
		r.HeartbeatAgeMillis = int64(s.w.between(0, 2*time.Second) / time.Millisecond)
	} else if s.heard >= 0 {
		r.HeartbeatAgeMillis = int64((s.w.t - s.heard) / time.Millisecond)
	}
	if s.io && s.sql && s.connected > 0 {
		r.SecondsBehind = new(int64(0))
	}
	return r
}

var hosts = [MaxInstances]string{"c1-1.ns.svc", "c1-2.ns.svc", "c1-3.ns.svc", "c1-4.ns.svc", "c1-5.ns.svc"}
