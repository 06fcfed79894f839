package sim

import (
	"strconv"
	"time"

	"cnmsql.co/operator/instance/lease"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// outline is what of a report is told at once when it changes.
type outline struct {
	state                        protocol.ServerState
	read, readOnly, offline      bool
	io, sql, connected           bool
	source                       string
	sourceOn, replicaOn, waiting bool
	clients                      int
	role                         string
	generation                   int64
	refusedResume, refusedTo     string
	leaseHeld, full              bool
}

// What a report says of a volume. It is never changed.
var (
	roomy = []protocol.Volume{{Name: protocol.VolumeData, SizeBytes: 1 << 30, AvailableBytes: 1 << 29}}
	full  = []protocol.Volume{{Name: protocol.VolumeData, SizeBytes: 1 << 30, Full: true}}
)

// report is the present report. The server's facts are of this moment if it answers.
func (m *manager) report() *protocol.Report {
	m.sequence++
	s, d := m.srv(), m.decision
	r := &protocol.Report{
		Instance: m.me(), PodUID: m.w.inst[m.n].uid, ClusterUID: "cluster", Boot: strconv.Itoa(m.p.boot), Sequence: m.sequence,
		Role: protocol.Role{
			Name: d.Role, Doing: d.Why, ResumeRefused: d.ResumeRefused, PromotionRefused: d.PromotionRefused,
			PromotionRefusedAttempt: d.PromotionRefusedAttempt, Errant: d.Errant,
		},
		Lease: protocol.Lease{Held: m.keeper.state.InForce(m.now())},
	}
	if r.Role.Name == "" {
		r.Role.Name = role.None
	}
	r.Volumes = roomy
	if s.full {
		r.Volumes = full
	}
	if m.cluster != nil {
		r.Role.Generation = m.cluster.c.Status.CurrentPrimaryGeneration
		if _, holding := m.keeper.state.RenewedAt(); holding {
			r.Lease.Peers = lease.Tally(m.me(), m.cluster.c.Status.InstanceNames, nil, nil).Peers
		}
	}
	switch {
	case !s.p.alive && m.stopping:
		r.Server.State = protocol.ServerStopping
	case !s.p.alive && m.held:
		r.Server.State = protocol.ServerFenced
	case m.held:
		r.Server.State = protocol.ServerStopping
	case !s.p.alive:
		r.Server.State = protocol.ServerDown
	case !s.ready:
		r.Server.State = protocol.ServerStarting
	default:
		r.Server.State, r.Server.Since = protocol.ServerRunning, s.readySince
		if !s.p.paused {
			r.MySQL = s.facts()
		}
	}
	return r
}

// fresh is the answer to a question: a server that does not answer leaves its part out.
func (m *manager) fresh() *protocol.Report { return m.report() }

func outlineOf(r *protocol.Report) outline {
	o := outline{
		state: r.Server.State, role: r.Role.Name, generation: r.Role.Generation,
		refusedResume: r.Role.ResumeRefused, refusedTo: r.Role.PromotionRefusedAttempt, leaseHeld: r.Lease.Held,
		full: r.Volumes[0].Trouble() != "",
	}
	if m := r.MySQL; m != nil {
		o.read, o.readOnly, o.offline = true, m.SuperReadOnly, m.Offline
		o.sourceOn, o.replicaOn, o.waiting, o.clients = m.SemiSync.SourceEnabled, m.SemiSync.ReplicaEnabled, m.SemiSync.Waiting > 0, m.SemiSync.Clients
		if p := m.Replication; p != nil {
			o.io, o.sql, o.connected, o.source = p.IORunning, p.SQLRunning, p.Connected, p.SourceHost
		}
	}
	return o
}

// worthAPass tells that the operator looks again when the second report follows the first: not for what each transaction changes.
func worthAPass(a, b *protocol.Report) bool {
	before, after := outlineOf(a), outlineOf(b)
	before.waiting, after.waiting = false, false
	return before != after || !a.Role.Errant.Equal(b.Role.Errant) || a.Role.PromotionRefused != b.Role.PromotionRefused
}

// publish takes a decision and tells the operator what has changed.
func (m *manager) publish(d role.Decision) {
	m.decision = d
	r := m.report()
	m.w.inst[m.n].readiness()
	if o := outlineOf(r); o != m.told {
		m.told = o
		m.push(r)
	}
}

// push sends a report down the operator's stream.
func (m *manager) push(r *protocol.Report) {
	w := m.w
	if !w.net.both(m.n, w.net.operator) {
		m.told = outline{}
		return
	}
	w.after(w.op.p, w.hop(), func() { w.op.heard(m.n, r) })
}

// progress tells the operator, within a second, of transactions that were written.
func (m *manager) progress() {
	if m.telling || !m.p.alive {
		return
	}
	m.telling = true
	m.w.after(m.p, time.Second, func() {
		m.telling = false
		m.push(m.report())
	})
}

// noticed makes the manager see, with its next reading of the server, what changed there by itself.
func (m *manager) noticed() {
	if m.noticing || !m.p.alive {
		return
	}
	m.noticing = true
	m.w.after(m.p, m.w.between(time.Millisecond, time.Second), func() {
		m.noticing = false
		m.publish(m.decision)
		m.wake()
	})
}
