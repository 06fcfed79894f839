package sim

import (
	"time"

	"cnmsql.co/operator/instance/role"
)

// carryOut does one step as the agent does it.
func (m *manager) carryOut(mo *moment, d role.Decision) {
	m.waitWhy = ""
	if m.w.tell != nil {
		m.say("%s: %s", d.Step.Kind, d.Why)
	}
	done := func(ok bool) {
		if !ok {
			m.failed()
			return
		}
		m.remember(mo, d)
		m.repeat = 0
		m.observe()
	}
	s := m.srv()
	switch d.Step.Kind {
	case role.Demote:
		m.closing.opened = 0
		m.demote(time.Second, demoteTimeout, done)
	case role.AcquireLease:
		m.keeper.acquire(done)
	case role.ReleaseLease:
		m.keeper.release(d.Step.Executed, d.Step.Attempt, done)
	case role.StopReceiver:
		m.statement(stepTimeout, func() bool { s.stopReceiver(); return true }, done)
	case role.StopReplica:
		m.statement(stepTimeout, func() bool { s.stopReceiver(); s.sql = false; return true }, done)
	case role.StartReplica:
		m.statement(stepTimeout, func() bool { s.startReplica(true); return true }, done)
	case role.StartApplier:
		m.statement(stepTimeout, func() bool { s.startReplica(false); return true }, done)
	case role.ResetReplica:
		m.statement(stepTimeout, func() bool { s.stopReceiver(); s.configured, s.sql, s.relay = false, false, nil; return true }, done)
	case role.Follow:
		m.follow(d, done)
	case role.SourceSemiSync:
		m.statement(stepTimeout, func() bool { s.setSemiSync(mo.facts.SemiSync, false, mo.intent.AckCount); return true }, done)
	case role.Acknowledge:
		m.statement(stepTimeout, func() bool { s.setSemiSync(s.sourceOn, true, 0); return true }, done)
	case role.ReplicaSemiSync:
		m.statement(stepTimeout, func() bool { s.setSemiSync(false, mo.facts.SemiSync || s.replicaOn, 0); return true }, done)
	case role.StopServer, role.KillServer, role.StartServer:
		m.keepStopped(d.Step.Kind)
		done(true)
	case role.RecordReassert:
		m.keeper.recordReassert(done)
	case role.Claim:
		m.claim(mo, d, 0)
	case role.OpenWrites:
		m.open(done)
	case role.AdmitClients:
		m.statement(stepTimeout, func() bool { s.offline = false; return true }, done)
	default:
		panic("a step that the model does not know: " + string(d.Step.Kind))
	}
}

// statement runs something in the server. One that does not answer in time may run it later all the same.
func (m *manager) statement(timeout time.Duration, do func() bool, done func(bool)) {
	s := m.srv()
	answered := false
	finish := func(ok bool) {
		if !answered {
			answered = true
			done(ok)
		}
	}
	m.w.later(m.p, timeout, func() { finish(false) })
	if !s.p.alive || !s.ready {
		m.w.after(m.p, time.Millisecond, func() { finish(false) })
		return
	}
	boot := m.p.boot
	m.w.after(s.p, m.w.between(200*time.Microsecond, 3*time.Millisecond), func() {
		ok := do()
		if m.p.boot == boot {
			m.w.after(m.p, 0, func() { finish(ok) })
		}
	})
	sboot := s.p.boot
	m.w.after(m.p, 50*time.Millisecond, func() {
		if s.p.boot != sboot {
			// The connection went with the server.
			finish(false)
		}
	})
}

func (m *manager) follow(d role.Decision, done func(bool)) {
	s, source := m.srv(), ordinal(d.Step.Source)
	// What was compared is a set; the model knows it by its text.
	known := *d.Step.Executed
	moved := true
	m.statement(stepTimeout, func() bool {
		held := s.held()
		s.stopReceiver()
		fits := known.Contains(m.w.sets.of(held))
		moved = fits && s.follow(source, held)
		return true
	}, func(ok bool) {
		if ok && !moved {
			m.staleState()
			return
		}
		done(ok)
	})
}

func (s *server) setSemiSync(source, replica bool, waitFor int) {
	if waitFor > 0 {
		s.waitFor = waitFor
	}
	if s.sourceOn && !source {
		s.sourceOn = false
		for s.waiting > 0 {
			s.commitOne(true)
		}
	}
	s.sourceOn = source
	if s.replicaOn != replica {
		s.replicaOn = replica
		if s.io {
			s.stopReceiver()
			s.io = true
			s.connect()
		}
	}
	s.apply()
}

// demote makes the server read-only in the shipped order: no new commits, then no clients, then no waiting.
func (m *manager) demote(drain, timeout time.Duration, done func(bool)) {
	s := m.srv()
	if m.w.rules.AnswerWaiters {
		m.statement(timeout, func() bool { s.setSemiSync(false, s.replicaOn, 0); return true }, func(bool) {})
	}
	m.statement(timeout, func() bool {
		s.closing = true
		if s.waiting > 0 {
			m.w.after(s.p, drain, s.closed)
			return true
		}
		s.closed()
		return true
	}, func(ok bool) {
		if !ok {
			done(false)
			return
		}
		m.confirmReadOnly(drain+time.Second, done)
	})
}

// closed ends the sessions of clients, after which the waiting commits may go on: nobody is answered.
func (s *server) closed() {
	if s.stuck {
		// What waits for room does not end.
		return
	}
	s.clients = 0
	for s.waiting > 0 {
		s.commitOne(false)
	}
	s.readOnly, s.closing, s.offline = true, false, true
}

func (m *manager) confirmReadOnly(patience time.Duration, done func(bool)) {
	s := m.srv()
	switch {
	case !s.p.alive || !s.ready || patience <= 0:
		// A statement that still waits is taken back.
		s.closing = s.closing && s.p.paused
		done(false)
	case !s.p.paused && s.readOnly:
		done(true)
	default:
		m.w.later(m.p, 20*time.Millisecond, func() { m.confirmReadOnly(patience-20*time.Millisecond, done) })
	}
}

// open opens the server for writes while the lease has time to spare.
func (m *manager) open(done func(bool)) {
	if m.keeper.state.Remaining(m.now()) <= openTimeout && !m.w.rules.NoSpareTime {
		m.staleState()
		return
	}
	s := m.srv()
	m.statement(openTimeout, func() bool {
		m.w.opened(m.n)
		s.readOnly, s.offline = false, false
		return true
	}, done)
}

// claim writes this instance into the Cluster as its primary, if the Cluster is what the claim was decided for.
func (m *manager) claim(mo *moment, d role.Decision, try int) {
	if try >= 4 {
		m.staleState()
		return
	}
	m.live(func(c *stored) {
		if c == nil {
			m.failed()
			return
		}
		if !m.claimable(mo.intent, c, d) {
			m.staleState()
			return
		}
		status := c.c.Status.DeepCopy()
		status.CurrentPrimary = m.me()
		status.CurrentPrimaryGeneration = mo.intent.Transition.Generation
		if m.w.rules.ClaimBlindly {
			status.CurrentPrimaryGeneration = c.c.Status.CurrentPrimaryGeneration + 1
		}
		status.PromotionGTIDExecuted = d.Step.Executed.String()
		status.CurrentPrimaryServerUUID = mo.facts.MySQL.ServerUUID
		var now *stored
		conflict := false
		m.w.call(m.p, m.n, m.w.net.api, nil, callTimeout, func() bool {
			read := c
			if m.w.rules.ClaimBlindly {
				read = m.w.api.cluster
			}
			now, conflict = nil, false
			if s, ok := m.w.api.putCluster(read, status, m.me()); ok {
				now = s
			} else {
				conflict = true
			}
			return true
		}, func(ok bool) {
			switch {
			case ok && conflict:
				m.claim(mo, d, try+1)
			case ok:
				m.sawCluster(now)
				m.remember(mo, d)
				m.observe()
			default:
				m.live(func(*stored) { m.failed() })
			}
		})
	})
}

func (m *manager) claimable(decided role.Intent, now *stored, d role.Decision) bool {
	return m.w.rules.ClaimBlindly || role.Claimable(m.me(), decided, m.intentOf(now), d, m.keeper.state.Remaining(m.now())) == ""
}

// remember keeps what the next decisions need to know of this one.
func (m *manager) remember(mo *moment, d role.Decision) {
	now := m.now()
	switch d.Step.Kind {
	case role.StartReplica, role.Follow:
		if m.retryAt != 0 {
			m.retryAt = now + retryBroken
		}
	case role.ReleaseLease:
		if r := d.Refused(mo.intent.Generation); r != nil {
			m.refusal, m.refusedAt = r, now
		}
	default:
	}
	m.rememberOpening(d.Step.Kind)
	if !d.Step.Kind.KeepsAnswers() {
		m.peers = nil
	}
}
