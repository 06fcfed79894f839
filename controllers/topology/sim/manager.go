package sim

import (
	"slices"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/lease"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// The pauses and bounds of the role loop, as shipped.
const (
	readTimeout   = 5 * time.Second
	callTimeout   = 3 * time.Second
	stepTimeout   = 15 * time.Second
	demoteTimeout = 30 * time.Second
	openTimeout   = 2 * time.Second
	askTimeout    = 2 * time.Second
	restPause     = 5 * time.Second
	firstWait     = 50 * time.Millisecond
	lastWait      = time.Second
	longWait      = 30 * time.Second
	firstRepeat   = 100 * time.Millisecond
	lastRepeat    = 5 * time.Second
	answersLast   = 5 * time.Second
	refusalLasts  = 10 * time.Second
	retryBroken   = 30 * time.Second
	routesLag     = 3 * time.Second
	hangBound     = 10 * time.Second
	handoffBound  = 5 * time.Second
	stepDownBound = 60 * time.Second
	maxSteps      = 32
)

// manager is an instance's manager: its view of the Cluster, its role loop, its part in the lease.
type manager struct {
	w *World
	n int
	p *proc
	// stale tells that its watches stand still.
	stale bool

	cluster *stored
	gotAt   time.Duration
	keeper  keeper

	// restarts is the pause before the server is started the next time, up that a start is under way.
	backoff time.Duration

	busy, again bool
	steps       int
	timer       int
	peers       *role.Peers
	asked       time.Duration
	refusal     *role.Refusal
	refusedAt   time.Duration
	retryAt     time.Duration
	primaryAt   time.Duration
	wasOne      bool
	waitWhy     string
	waitSince   time.Duration
	waitPause   time.Duration
	repeat      time.Duration

	closing  closing
	stopping bool
	// held tells that the server is kept stopped. From silentAt on it has answered nothing, from unclosedAt on it has not
	// become read-only for a fence, and from steppedAt on only itself has still to go for one; negative while not so.
	held                            bool
	silentAt, unclosedAt, steppedAt time.Duration

	stepDownDue bool

	decision role.Decision
	sequence uint64
	told     outline
	noticing bool
	telling  bool
}

// moment is what one decision is made from.
type moment struct {
	cluster *stored
	facts   role.Facts
	intent  role.Intent
}

// boot begins a new life of the manager.
func (m *manager) boot() {
	p, w := m.p, m.w
	*m = manager{w: w, n: m.n, p: p, stale: m.stale, backoff: 250 * time.Millisecond, silentAt: -1, unclosedAt: -1, steppedAt: -1}
	p.start()
	m.keeper = keeper{m: m, state: lease.New(api.LeaseHolder(m.me(), m.w.inst[m.n].uid), w.rules.Times)}
	w.after(p, w.between(time.Millisecond, 50*time.Millisecond), m.list)
	m.wake()
}

func (m *manager) me() string         { return name(m.n) }
func (m *manager) srv() *server       { return m.w.inst[m.n].srv }
func (m *manager) now() time.Duration { return m.w.now(m.p) }

func (m *manager) say(format string, args ...any) { m.w.say(m.me(), format, args...) }

// list reads the Cluster and the Lease anew, as a watch that begins does.
func (m *manager) list() {
	if !m.w.net.both(m.n, m.w.net.api) || m.stale {
		return
	}
	m.sawCluster(m.w.api.cluster)
	m.sawLease(m.w.api.lease)
}

// sawCluster takes a version of the Cluster unless a newer one is known.
func (m *manager) sawCluster(c *stored) {
	if m.cluster != nil && c.version <= m.cluster.version {
		return
	}
	m.cluster, m.gotAt = c, m.now()
	m.wake()
}

func (m *manager) sawLease(l *leaseObject) { m.keeper.saw(l) }

// wake makes the role loop look.
func (m *manager) wake() {
	if m.busy {
		m.again = true
		return
	}
	m.busy, m.again, m.steps = true, false, 0
	m.timer++
	m.w.after(m.p, 0, m.observe)
}

// rest ends a turn; the next begins after the pause, or when something wakes the loop.
func (m *manager) rest(pause time.Duration) {
	m.busy = false
	if m.again {
		pause = min(pause, 0)
	}
	m.timer++
	timer := m.timer
	m.w.later(m.p, pause, func() {
		if m.timer == timer {
			m.wake()
		}
	})
}

// observe reads everything, then decides.
func (m *manager) observe() {
	m.w.turns++
	if m.steps++; m.steps > maxSteps {
		m.rest(lastWait)
		return
	}
	m.read(readTimeout, func(facts *protocol.MySQL) {
		mo := m.moment(facts)
		m.decide(&mo, 0)
	})
}

// read asks the server for its facts; nil when it does not answer.
func (m *manager) read(timeout time.Duration, then func(*protocol.MySQL)) {
	s := m.srv()
	if !s.p.alive || !s.ready {
		then(nil)
		return
	}
	if !s.p.paused {
		then(s.facts())
		return
	}
	m.w.later(m.p, timeout, func() { then(nil) })
}

func (m *manager) moment(facts *protocol.MySQL) moment {
	mo := moment{cluster: m.cluster, intent: m.intentOf(m.cluster)}
	now := m.now()
	s := m.srv()
	f := role.Facts{
		Instance: m.me(), SemiSync: m.w.cfg.SemiSync > 0 && m.cluster != nil, ShuttingDown: m.stopping, StepDownDue: m.stepDownDue,
		ServerGone: !s.p.alive, ServerRunning: facts != nil, MySQL: facts, Lease: m.keeper.facts(),
	}
	switch {
	case facts == nil || !facts.Replication.Broken():
		m.retryAt = 0
	case m.retryAt == 0:
		m.retryAt = now + retryBroken
	default:
		f.RetryDue = now >= m.retryAt
	}
	f.ServerHeld, f.ServerStarting = m.held, s.p.alive && !s.ready
	bound := stepDownBound
	if s.full {
		bound = hangBound
	}
	f.ServerStuck = lasts(&m.silentAt, s.p.alive && s.ready && facts == nil, now) >= hangBound ||
		lasts(&m.unclosedAt, role.Unclosed(f, mo.intent), now) >= bound
	f.HandoverOverdue = lasts(&m.steppedAt, role.HandingOver(f, mo.intent), now) >= handoffBound
	if mo.intent.CurrentPrimary == m.me() {
		m.wasOne, m.primaryAt = true, now
	}
	f.Closed = m.closedByOther(facts)
	f.LatelyPrimary = m.wasOne && now-m.primaryAt < routesLag
	if m.refusal != nil && m.refusal.Attempt == "" && now-m.refusedAt > refusalLasts {
		m.refusal = nil
	}
	f.Refusal = m.refusal
	f.Peers = m.answers()
	mo.facts = f
	return mo
}

// lasts keeps from when on something is so, and returns for how long it has been.
func lasts(at *time.Duration, so bool, now time.Duration) time.Duration {
	if !so {
		*at = -1
		return 0
	}
	if *at < 0 {
		*at = now
	}
	return now - *at
}

// answers is what the peers last said, unless that is too old.
func (m *manager) answers() *role.Peers {
	if m.peers == nil || m.now()-m.asked > answersLast {
		m.peers = nil
		return nil
	}
	acquired, holding := m.keeper.state.AcquiredAt()
	return &role.Peers{SinceLease: holding && m.asked >= acquired, Answers: m.peers.Answers, Silent: m.peers.Silent}
}

// intentOf is what a Cluster means to this instance.
func (m *manager) intentOf(c *stored) role.Intent {
	if c == nil {
		return role.Intent{}
	}
	s := &c.c.Status
	i := role.Intent{
		Known: true, CurrentPrimary: s.CurrentPrimary, Generation: s.CurrentPrimaryGeneration,
		Diverged: slices.Contains(s.DivergedInstances, m.me()), Fenced: slices.Contains(s.FencedInstances, m.me()), AckCount: max(1, m.w.cfg.SemiSync),
	}
	if t := s.PrimaryTransition; t != nil {
		i.Transition = &role.Transition{Attempt: t.Attempt, Kind: role.Kind(t.Kind), From: t.From, To: t.To, Generation: t.Generation}
	}
	if set, err := gtid.Parse(s.PromotionGTIDExecuted); err == nil {
		i.PromotionExecuted = &set
	}
	return i
}

// decide asks for the step; peers and the API server are asked without reading the own facts again.
func (m *manager) decide(mo *moment, round int) {
	if round >= 4 {
		m.failed()
		return
	}
	d := m.w.rules.Role(mo.facts, mo.intent)
	switch d.Step.Kind {
	case role.AskPeers:
		m.askPeers(mo, func() { m.decide(mo, round+1) })
	case role.Confirm:
		m.live(func(c *stored) {
			if c == nil {
				m.failed()
				return
			}
			mo.cluster, mo.intent = c, m.intentOf(c)
			mo.intent.Live = true
			mo.facts.Lease = m.keeper.facts()
			mo.facts.ShuttingDown, mo.facts.StepDownDue = m.stopping, m.stepDownDue
			m.decide(mo, round+1)
		})
	default:
		m.publish(d)
		if d.Step.Kind == role.Rest || d.Step.Kind == role.Wait {
			m.idle(d)
			return
		}
		m.carryOut(mo, d)
	}
}

// idle ends a turn in which nothing was to be done.
func (m *manager) idle(d role.Decision) {
	now := m.now()
	m.peers, m.repeat = nil, 0
	if d.Step.Kind == role.Rest {
		m.waitWhy = ""
		m.rest(restPause)
		return
	}
	if d.Why != m.waitWhy {
		m.say("waits: %s", d.Why)
		m.waitWhy, m.waitSince, m.waitPause = d.Why, now, firstWait
	}
	pause := m.waitPause
	m.waitPause = min(2*m.waitPause, lastWait)
	if now-m.waitSince > longWait {
		pause = restPause
	}
	if left := m.keeper.state.UntilExpiry(now); left > 0 {
		pause = min(pause, left)
	}
	m.rest(pause)
}

// failed ends a turn in which a step failed.
func (m *manager) failed() {
	m.peers = nil
	m.repeat = min(max(2*m.repeat, firstRepeat), lastRepeat)
	m.rest(m.repeat)
}

// staleState ends a turn whose step was decided from what is not so any more.
func (m *manager) staleState() {
	m.peers, m.repeat = nil, 0
	m.rest(time.Millisecond)
}
