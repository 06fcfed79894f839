package sim

import (
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// Mutant is the rules with one guard removed. Where two guards stand one behind the other, so that no harm
// comes of the loss of either, both are removed.
type Mutant struct {
	// Name is the guard that is missing.
	Name string
	// Kinds are the faults that lead to it fastest; nil for all.
	Kinds []FaultKind
	// from is a schedule shortly before the first that finds it, where that takes many.
	from uint64
	// scene are the faults of every plan instead, on three instances.
	scene []Fault
	// change removes the guard.
	change func(*Rules)
}

// Rules are the shipped rules without the guard.
func (m Mutant) Rules() *Rules {
	r := Shipped()
	m.change(r)
	return r
}

// FindMutant finds one by name.
func FindMutant(name string) (Mutant, bool) {
	for _, m := range Mutants {
		if m.Name == name {
			return m, true
		}
	}
	return Mutant{}, false
}

// Mutants is all of them.
var Mutants = []Mutant{
	{Name: "held is compared, not executed", from: 650, change: executedOnly, Kinds: []FaultKind{SlowApplier, SlowReceiver, KillServer}},
	{Name: "the lease is renewed in time and fenced before it expires", change: func(r *Rules) {
		r.Vouch = false
		r.Times.Renew, r.Times.Fence, r.Times.Kill = 30*time.Second, 30*time.Second, 33*time.Second
	}},
	{Name: "a holder that cannot renew makes its server read-only", change: func(r *Rules) { r.NoFence, r.Times.Kill = true, time.Hour }},
	{Name: "a server that does not become read-only is killed", from: 900, change: func(r *Rules) { r.Times.Kill = time.Hour }},
	{Name: "the watchdog ends a server whose manager hangs", from: 600, change: func(r *Rules) { r.NoWatchdog = true }, Kinds: []FaultKind{PauseManager, PauseMachine, CutOperator, CutInstances}},
	{Name: "a lease is waited for", change: func(r *Rules) { r.Impatient = true }},
	{Name: "expiry is judged by the observer's clock", change: func(r *Rules) { r.TrustRenewTime = true }},
	{Name: "who vouched does not take the lease", from: 1200, change: func(r *Rules) { r.ForgetPromises = true }, Kinds: []FaultKind{CutAPI, CutFromAPI, AskSwitchover}},
	{Name: "the claim comes before the writes", change: openFirst},
	{Name: "facts are read anew, and compared again under the lease", change: staleFacts, Kinds: []FaultKind{KillServer, SlowReceiver}},
	{Name: "a transition is of the next generation, and a claim of the state that was read", change: anyGeneration},
	{Name: "the label follows the fact", change: labelFirst},
	{Name: "the lease is released after the server is read-only", change: releaseFirst},
	{Name: "a replica is compared with the primary before it is attached", change: attachBlindly, Kinds: []FaultKind{CutInstances, Isolate, CrashMachine, KillContainer, SlowReceiver}},
	{Name: "clients' sessions end before semi-sync is switched off", change: func(r *Rules) { r.AnswerWaiters = true }, Kinds: []FaultKind{CutInstances, Isolate, AskSwitchover, PauseServer, CutAPI}},
	{Name: "a primary waits for acknowledgements", change: noSemiSync, Kinds: []FaultKind{KillServer, SlowReceiver}},
	{Name: "enough witnesses answer", from: 850, change: noWitnesses, Kinds: []FaultKind{CrashMachine, PauseMachine, SlowReceiver, KillContainer, LoseMachine, CutOperator}},
	{Name: "the relay log outlives a crash", from: 1200, change: func(r *Rules) { r.LoseRelayLog = true }, Kinds: []FaultKind{SlowApplier, KillServer, CrashMachine, KillContainer}},
	{Name: "a claim is of the state that was read", change: func(r *Rules) { r.ClaimBlindly = true }, scene: []Fault{
		{Kind: SlowInstance, A: 1, At: time.Second, For: 40 * time.Second}, {Kind: KillServer, A: 0, At: 3 * time.Second},
		{Kind: KillContainer, A: 1, At: 3200 * time.Millisecond},
	}},
	{Name: "a status is of the state that was read", change: func(r *Rules) { r.CommitBlindly = true }, Kinds: []FaultKind{SlowOperator, StaleOperator, KillServer, AskSwitchover, KillContainer, PauseOperator}},
	{Name: "the state is confirmed before writes open", change: neverConfirm, Kinds: []FaultKind{StaleInstance, KillServer, CrashMachine, PauseMachine, CutFromAPI}},
	{Name: "a server that lost its tail does not resume", change: forgetOwn, Kinds: []FaultKind{TearDisk}},
	{Name: "every wait is looked at again", change: neverRecheck},
	{Name: "a fenced instance takes no role", change: func(r *Rules) { ignoreFences(r); r.ClaimBlindly = true }, scene: []Fault{
		{Kind: FenceInstance, A: 1, At: time.Second, For: 40 * time.Second}, {Kind: LoseMachine, A: 0, At: 3 * time.Second},
	}},
	{Name: "the Pod of a fenced instance stays", change: ignoreFences, scene: []Fault{
		{Kind: FenceInstance, A: 0, At: time.Second, For: time.Minute}, {Kind: PauseManager, A: 0, At: 2 * time.Second, For: 30 * time.Second},
	}},
}

// withMySQL changes what the operator reads of every server.
func withMySQL(s core.Snapshot, change func(*protocol.MySQL)) core.Snapshot {
	for n := range s.Instances {
		i := &s.Instances[n]
		if i.Report == nil || i.Report.MySQL == nil {
			continue
		}
		report, m := *i.Report, *i.Report.MySQL
		change(&m)
		report.MySQL, i.Report = &m, &report
	}
	return s
}

// withPeers changes what an instance hears of the others.
func withPeers(f role.Facts, change func(*role.Peer)) role.Facts {
	if f.Peers == nil {
		return f
	}
	peers := &role.Peers{SinceLease: f.Peers.SinceLease, Answers: append([]role.Peer{}, f.Peers.Answers...)}
	for n := range peers.Answers {
		change(&peers.Answers[n])
	}
	f.Peers = peers
	return f
}

func executedOnly(r *Rules) {
	r.Core = func(s core.Snapshot) core.Decision {
		return core.Decide(withMySQL(s, func(m *protocol.MySQL) {
			if m.Replication != nil {
				replication := *m.Replication
				replication.Received, m.Replication = gtid.Set{}, &replication
			}
		}))
	}
	r.Role = func(f role.Facts, i role.Intent) role.Decision {
		return role.Decide(withPeers(f, func(p *role.Peer) { p.Held = p.Executed }), i)
	}
}

func openFirst(r *Rules) {
	r.Role = func(f role.Facts, i role.Intent) role.Decision {
		d := role.Decide(f, i)
		if d.Step.Kind == role.Claim {
			d.Step.Kind = role.OpenWrites
		}
		return d
	}
}

func staleFacts(r *Rules) {
	r.Core = func(s core.Snapshot) core.Decision {
		s.Fresh = true
		return core.Decide(s)
	}
	r.Role = func(f role.Facts, i role.Intent) role.Decision {
		if t := i.Transition; t != nil && t.To == f.Instance {
			f.Peers = &role.Peers{SinceLease: true}
		}
		return role.Decide(f, i)
	}
}

func anyGeneration(r *Rules) {
	r.ClaimBlindly = true
	r.Role = func(f role.Facts, i role.Intent) role.Decision {
		if i.Transition != nil {
			t := *i.Transition
			t.Generation, i.Transition = i.Generation+1, &t
		}
		return role.Decide(f, i)
	}
}

func labelFirst(r *Rules) {
	r.Core = func(s core.Snapshot) core.Decision {
		d := core.Decide(s)
		t := d.Status.PrimaryTransition
		if t == nil {
			return d
		}
		for _, i := range s.Instances {
			if i.Name == t.To && i.Pod != nil && i.Pod.Role != api.RolePrimary {
				d.Actions = append(d.Actions, core.Action{Kind: core.LabelPod, Instance: i.Name, PodUID: i.Pod.UID, Role: api.RolePrimary, Routable: true})
			}
		}
		return d
	}
}

func releaseFirst(r *Rules) {
	r.Role = func(f role.Facts, i role.Intent) role.Decision {
		d := role.Decide(f, i)
		if d.Step.Kind == role.Demote && f.Lease.Mine && i.Transition != nil && f.MySQL != nil {
			d.Step = role.Step{Kind: role.ReleaseLease, Executed: &f.MySQL.Executed, Attempt: i.Transition.Attempt}
		}
		return d
	}
}

func attachBlindly(r *Rules) {
	r.Role = func(f role.Facts, i role.Intent) role.Decision {
		i.Diverged = false
		if f.MySQL != nil && i.CurrentPrimary != f.Instance {
			held := f.MySQL.Held()
			f = withPeers(f, func(p *role.Peer) { p.Executed = p.Executed.Union(held) })
		}
		return role.Decide(f, i)
	}
}

func noSemiSync(r *Rules) {
	r.Role = func(f role.Facts, i role.Intent) role.Decision {
		f.SemiSync = false
		return role.Decide(f, i)
	}
}

func noWitnesses(r *Rules) {
	r.Core = func(s core.Snapshot) core.Decision {
		c := *s.Cluster
		if c.Spec.MySQL.SemiSync != nil {
			semiSync := *c.Spec.MySQL.SemiSync
			semiSync.DataDurability, c.Spec.MySQL.SemiSync = api.DurabilityPreferred, &semiSync
		}
		s.Cluster = &c
		return core.Decide(s)
	}
}

func neverConfirm(r *Rules) {
	r.Role = func(f role.Facts, i role.Intent) role.Decision {
		i.Live = true
		return role.Decide(f, i)
	}
}

func forgetOwn(r *Rules) {
	r.Role = func(f role.Facts, i role.Intent) role.Decision {
		if i.CurrentPrimary == f.Instance {
			f = withPeers(f, func(p *role.Peer) { p.Held = gtid.Set{} })
		}
		return role.Decide(f, i)
	}
}

func ignoreFences(r *Rules) {
	r.Core = func(s core.Snapshot) core.Decision {
		fenced := s.Cluster.Status.FencedInstances
		c := *s.Cluster
		c.Status.FencedInstances, s.Cluster = nil, &c
		d := core.Decide(s)
		d.Status.FencedInstances = fenced
		return d
	}
	r.Role = func(f role.Facts, i role.Intent) role.Decision {
		i.Fenced = false
		return role.Decide(f, i)
	}
}

func neverRecheck(r *Rules) {
	r.Core = func(s core.Snapshot) core.Decision {
		d := core.Decide(s)
		d.Recheck = 0
		return d
	}
}

// Plan is the plan of a seed that looks for this mutant.
func (m Mutant) Plan(seed uint64) Plan {
	if m.scene != nil {
		return Plan{Config: Config{Instances: 3, SemiSync: 1, Rules: m.Rules()}, Faults: m.scene, Seed: seed}
	}
	if m.Kinds == nil {
		return Random(seed, m.Rules())
	}
	return RandomOf(seed, m.Rules(), m.Kinds)
}
