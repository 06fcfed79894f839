package agent

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/lease"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
)

const (
	uuidA = "aaaaaaaa-0000-0000-0000-000000000001"
	uuidB = "bbbbbbbb-0000-0000-0000-000000000002"
	uuidC = "cccccccc-0000-0000-0000-000000000003"
)

func gtids(t testing.TB, text string) gtid.Set {
	t.Helper()
	s, err := gtid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// testServer is a process and the server in it.
type testServer struct {
	mu      sync.Mutex
	clock   Clock
	state   mysqld.State
	changed chan struct{}
	facts   protocol.MySQL
	steps   []string
	at      map[string]time.Duration // when each step was done last
	errs    map[string]error         // what a step answers instead
	reads   int
	slow    time.Duration // each read
	hangs   bool          // every step and every read
	// onStep is told each step while the server is locked.
	onStep func(step string, m *protocol.MySQL)
}

func newTestServer(clock Clock, uuid string) *testServer {
	return &testServer{
		clock: clock, changed: make(chan struct{}), at: map[string]time.Duration{}, errs: map[string]error{},
		state: mysqld.State{Server: protocol.ServerRunning, Pid: 7},
		facts: protocol.MySQL{ServerUUID: uuid, ReadOnly: true, SuperReadOnly: true},
	}
}

// alter changes what the server is, behind everybody's back.
func (s *testServer) alter(f func(*protocol.MySQL)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(&s.facts)
}

func (s *testServer) become(state protocol.ServerState, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Server, s.state.Pid = state, pid
	if pid == 0 {
		s.facts.ReadOnly, s.facts.SuperReadOnly = true, true // it boots so
		s.facts.SemiSync = protocol.SemiSync{}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *testServer) done() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.steps)
}

func (s *testServer) now() *protocol.MySQL {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copy()
}

func (s *testServer) copy() *protocol.MySQL {
	m := s.facts
	if m.Replication != nil {
		r := *m.Replication
		m.Replication = &r
	}
	return &m
}

func (s *testServer) step(ctx context.Context, name string, change func(*protocol.MySQL)) error {
	if err := s.answer(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.errs[name]; err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	s.steps = append(s.steps, name)
	s.at[name] = s.clock.Now()
	change(&s.facts)
	if s.onStep != nil {
		s.onStep(name, &s.facts)
	}
	return nil
}

// answer is whether the server does: one that hangs never, one that is not there says so.
func (s *testServer) answer(ctx context.Context) error {
	s.mu.Lock()
	hangs, pid := s.hangs, s.state.Pid
	s.mu.Unlock()
	if pid == 0 {
		return errors.New("no connection")
	}
	if hangs {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (s *testServer) State() mysqld.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

func (s *testServer) Watch() (mysqld.State, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state, s.changed
}

func (s *testServer) Start() { s.become(protocol.ServerStarting, 8) }

func (s *testServer) Stop(context.Context) error {
	s.mu.Lock()
	s.steps = append(s.steps, "stop")
	s.mu.Unlock()
	s.become(protocol.ServerDown, 0)
	return nil
}

func (s *testServer) Hold(within time.Duration) {
	s.mu.Lock()
	s.steps = append(s.steps, "hold "+within.String())
	s.state.Held = true
	s.mu.Unlock()
	s.become(protocol.ServerFenced, 0)
}

func (s *testServer) Release() {
	s.mu.Lock()
	s.steps = append(s.steps, "release")
	s.state.Held = false
	s.mu.Unlock()
	s.become(protocol.ServerRunning, 9)
}

func (s *testServer) PrepareStop(ctx context.Context) error {
	return s.step(ctx, "prepare stop", func(*protocol.MySQL) {})
}

func (s *testServer) Kill() {
	s.mu.Lock()
	s.steps = append(s.steps, "kill")
	s.mu.Unlock()
	s.become(protocol.ServerDown, 0)
}

func (s *testServer) Read(ctx context.Context) (*protocol.MySQL, error) {
	s.mu.Lock()
	slow := s.slow
	s.mu.Unlock()
	if slow > 0 {
		sleep(ctx, slow)
	}
	if err := s.answer(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if err := s.errs["read"]; err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.copy(), nil
}

func (s *testServer) Version(context.Context) (string, error) { return "9.7.4", nil }

func threads(m *protocol.MySQL, io, sql bool) {
	m.Replication.IORunning, m.Replication.SQLRunning = io, sql
}

func (s *testServer) StopReplicaIO(ctx context.Context) error {
	return s.step(ctx, "stop receiver", func(m *protocol.MySQL) { m.Replication.IORunning = false })
}

func (s *testServer) StopReplica(ctx context.Context) error {
	return s.step(ctx, "stop replica", func(m *protocol.MySQL) { threads(m, false, false) })
}

func (s *testServer) StartReplica(ctx context.Context) error {
	return s.step(ctx, "start replica", func(m *protocol.MySQL) { threads(m, true, true) })
}

func (s *testServer) StartReplicaSQL(ctx context.Context) error {
	return s.step(ctx, "start applier", func(m *protocol.MySQL) { m.Replication.SQLRunning = true })
}

func (s *testServer) ResetReplicaAll(ctx context.Context) error {
	return s.step(ctx, "reset replica", func(m *protocol.MySQL) { m.Replication = nil })
}

func (s *testServer) Follow(ctx context.Context, source mysql.Source, _ gtid.Set) error {
	return s.step(ctx, "follow "+source.Host, func(m *protocol.MySQL) {
		m.Replication = &protocol.Replication{SourceHost: source.Host, IORunning: true, SQLRunning: true}
	})
}

func (s *testServer) Demote(ctx context.Context, o mysql.DemoteOptions) error {
	return s.step(ctx, "demote", func(m *protocol.MySQL) {
		m.ReadOnly, m.SuperReadOnly, m.Offline = true, true, !o.Admit
		if m.SemiSync.Waiting > 0 {
			m.SemiSync.SourceEnabled, m.SemiSync.Waiting = false, 0
		}
	})
}

func (s *testServer) AdmitClients(ctx context.Context) error {
	return s.step(ctx, "admit clients", func(m *protocol.MySQL) { m.Offline = false })
}

func (s *testServer) OpenWrites(ctx context.Context) error {
	return s.step(ctx, "open writes", func(m *protocol.MySQL) { m.ReadOnly, m.SuperReadOnly, m.Offline = false, false, false })
}

func (s *testServer) SetSemiSync(ctx context.Context, source, replica bool, waitFor int) error {
	if m := s.now(); source && m.SemiSync.SourceMissing || replica && m.SemiSync.ReplicaMissing {
		return errors.New("the plugin is not loaded")
	}
	return s.step(ctx, "semi-sync", func(m *protocol.MySQL) {
		m.SemiSync.SourceEnabled, m.SemiSync.ReplicaEnabled = source, replica
		if waitFor > 0 {
			m.SemiSync.WaitFor = waitFor
		}
	})
}

// testPeers answers for the other instances.
type testPeers struct {
	mu      sync.Mutex
	clock   Clock
	reports map[string]protocol.Report
	silence time.Duration // what an instance without a report costs
	asked   []time.Duration
	names   []string
	onAsk   func()
}

func (p *testPeers) Ask(ctx context.Context, instances []string) []protocol.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, p.clock.Now())
	p.names = instances
	if p.onAsk != nil {
		p.onAsk()
	}
	var out []protocol.Report
	silence := time.Duration(0)
	for _, i := range instances {
		if r, ok := p.reports[i]; ok {
			out = append(out, r)
		} else {
			silence = p.silence
		}
	}
	if silence > 0 {
		sleep(ctx, silence)
	}
	return out
}

func (p *testPeers) say(t testing.TB, instance, uuid string, generation int64, executed string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reports[instance] = protocol.Report{
		Instance: instance, Role: protocol.Role{Generation: generation},
		MySQL: &protocol.MySQL{ServerUUID: uuid, ReadOnly: true, SuperReadOnly: true, Executed: gtids(t, executed)},
	}
}

func (p *testPeers) rounds() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.asked)
}

// world is instance c-2 with all its runnables, on a fake server, API server and peers. The others are c-1,
// the primary, and c-3.
type world struct {
	t        *testing.T
	clock    *testClock
	api      *testAPI
	server   *testServer
	peers    *testPeers
	voters   *testVoters
	instance *Instance
	keeper   *Keeper
	watcher  *Watcher
	loop     *Loop
	reporter *Reporter
	stopping *Stopping
	wake     func()
	grace    time.Duration // of the Pod
	volumes  []protocol.Volume
}

const self = "c-2"

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: newTestClock(), stopping: &Stopping{}}
	w.api = newTestAPI(w.clock)
	w.api.cluster.Status = api.ClusterStatus{
		InstanceNames: []string{"c-1", "c-2", "c-3"}, CurrentPrimary: "c-1", CurrentPrimaryGeneration: 3,
		PromotionGTIDExecuted: uuidA + ":1-10",
	}
	w.server = newTestServer(w.clock, uuidB)
	w.server.facts.Executed = gtids(t, uuidA+":1-100")
	w.peers = &testPeers{clock: w.clock, reports: map[string]protocol.Report{}}
	w.wake = func() {
		w.reporter.Wake()
		w.loop.Wake()
	}
	w.instance = NewInstance(w.server, func() { w.wake() })
	w.voters = &testVoters{clock: w.clock}
	w.keeper = NewKeeper(KeeperOptions{
		API: w.api, Clock: w.clock, Instance: self, Holder: self + "/1", Fencer: ServerFencer{w.instance, w.server},
		Voters: w.voters, View: func() lease.View { return ViewOf(w.watcher.Cluster(), self) },
		Changed: func() { w.wake() }, Log: discard(),
	})
	w.watcher = NewWatcher(w.api, w.clock, w.keeper, func() { w.wake() }, discard())
	w.reporter = NewReporter(ReporterOptions{
		Instance: self, PodUID: "1", Server: w.instance, Reader: w.server, Watcher: w.watcher, Keeper: w.keeper, Clock: w.clock,
		ConfigHashes: func() (string, string, string) { return "", "", "" }, Changed: func() { w.loop.Wake() }, Log: discard(),
		Reasserts: func() int64 { return w.loop.Reasserts() }, Volumes: func() []protocol.Volume { return w.volumes },
	})
	w.loop = NewLoop(LoopOptions{
		Name: self, Instance: w.instance, Server: w.server, Watcher: w.watcher, Keeper: w.keeper, Peers: w.peers, API: w.api,
		Clock: w.clock, Stopping: w.stopping, Publish: w.reporter.Publish, NoRoom: w.reporter.NoRoom, Log: discard(),
		Source: func(i string) (mysql.Source, error) { return mysql.Source{Host: i + ".ns.svc"}, nil },
	})
	return w
}

// replica makes it a healthy replica of c-1, which holds the lease.
func (w *world) replica() {
	w.server.alter(func(m *protocol.MySQL) {
		m.Replication = &protocol.Replication{SourceHost: "c-1.ns.svc", IORunning: true, SQLRunning: true, Received: gtids(w.t, uuidA+":50-100")}
	})
	w.api.hold("c-1/1")
	w.peers.say(w.t, "c-1", uuidA, 3, uuidA+":1-100")
	w.peers.say(w.t, "c-3", uuidC, 3, uuidA+":1-99")
}

// primary makes it the primary in generation 3, before its lease.
func (w *world) primary() {
	w.api.change(func(s *api.ClusterStatus) { s.CurrentPrimary = self })
	w.peers.say(w.t, "c-1", uuidA, 3, uuidA+":1-100")
	w.peers.say(w.t, "c-3", uuidC, 3, uuidA+":1-100")
}

func (w *world) start() {
	w.instance.Provisioned()
	background(w.t, w.keeper.Run, w.watcher.Run, w.loop.Run, w.reporter.Run)
	w.settle()
}

// settle lets everything happen that needs no time to pass beyond a moment.
func (w *world) settle() {
	time.Sleep(50 * time.Millisecond)
	synctest.Wait()
}

func (w *world) transition(kind api.TransitionKind, from, to string) {
	w.api.change(func(s *api.ClusterStatus) {
		s.PrimaryTransition = &api.PrimaryTransition{Attempt: "x1", Kind: kind, From: from, To: to, Generation: s.CurrentPrimaryGeneration + 1}
	})
}

// acknowledgedPrimary is a primary whose commits wait for one replica.
func (w *world) acknowledgedPrimary() {
	w.api.cluster.Spec.MinSyncReplicas = 1
	w.api.cluster.Spec.MySQL.SemiSync = &api.SemiSyncConfiguration{Enabled: true}
	w.primary()
}

func (w *world) wantSteps(want ...string) {
	w.t.Helper()
	if got := w.server.done(); !slices.Equal(got, want) {
		w.t.Fatalf("steps %q, want %q; doing: %s", got, want, w.reporter.Report().Role.Doing)
	}
}
