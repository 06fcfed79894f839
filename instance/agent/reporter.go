package agent

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

const (
	// readEvery is how often the server's facts are read anew, and how often a mere progress of its
	// transactions is told.
	readEvery    = time.Second
	freshTimeout = 1500 * time.Millisecond // below a peer's askTimeout
)

// ReporterOptions are what a Reporter works with.
type ReporterOptions struct {
	// Instance, PodUID and ClusterUID are who speaks, Boot identifies this process, Version is the manager's.
	Instance, PodUID, ClusterUID, Boot, Version string

	Server  *Instance
	Reader  Reader
	Watcher *Watcher
	Keeper  *Keeper
	Clock   Clock
	// ConfigHashes are of the my.cnf that the server runs with and of the one that is wanted, which is
	// protocol.ConfigInvalid when there can be none; refused says why.
	ConfigHashes func() (running, wanted, refused string)
	// Volumes reads the file systems that the server writes to, once a second; nil for none.
	Volumes func() []protocol.Volume
	// Heartbeat is what is known by the heartbeat; nil for nothing.
	Heartbeat func() *protocol.Heartbeat
	// Reasserts is how often a server was opened that somebody else had made read-only; nil for never.
	Reasserts func() int64
	// Changed is called when the server's facts or its state have changed in more than its transactions.
	Changed func()
	Log     logr.Logger
}

// Reporter says what this instance is: to whoever asks, and to those who watch.
type Reporter struct {
	o    ReporterOptions
	wake signal

	mu       sync.Mutex
	facts    *protocol.MySQL
	readAt   time.Duration // start of the read
	readWall time.Time
	version  string
	decision role.Decision
	volumes  []protocol.Volume
	sequence uint64
	watchers map[chan []byte]struct{}
	line     []byte        // the last line that was sent
	material []byte        // what of it is told at once when it changes
	content  []byte        // what of it is told within readEvery
	sentAt   time.Duration // when it was sent
}

// NewReporter makes a Reporter.
func NewReporter(o ReporterOptions) *Reporter {
	return &Reporter{o: o, wake: newSignal(), readAt: -1, watchers: map[chan []byte]struct{}{}}
}

// Wake makes the reporter look at once for what has changed.
func (r *Reporter) Wake() { r.wake.set() }

// Publish takes a decision of the role loop with the facts it was made from.
func (r *Reporter) Publish(m *protocol.MySQL, readAt time.Duration, d role.Decision) {
	r.mu.Lock()
	r.decision = d
	r.take(m, readAt)
	r.mu.Unlock()
	r.wake.set()
}

// take keeps facts unless those it has were read later.
func (r *Reporter) take(m *protocol.MySQL, readAt time.Duration) {
	if m == nil || readAt < r.readAt {
		return
	}
	r.facts, r.readAt, r.readWall = m, readAt, time.Now()
}

// Run reads, and tells those who watch, until ctx ends.
func (r *Reporter) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { r.watchServer(ctx) })
	// Not waited for at the end: a file system that does not answer would keep the manager from ending.
	go r.measure(ctx)
	for ctx.Err() == nil {
		r.refresh(ctx)
		wait := r.tell()
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	group.Wait()
	return nil
}

// watchServer makes the end of a server known at once.
func (r *Reporter) watchServer(ctx context.Context) {
	last := protocol.ServerState("")
	for {
		st, changed := r.o.Server.Watch()
		if st.Server != last {
			last = st.Server
			r.mu.Lock()
			r.facts, r.version = nil, ""
			r.readAt = -1
			r.mu.Unlock()
			r.wake.set()
			r.o.Changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// measure reads the volumes again and again, until ctx ends. They matter even without a server. It waits for nobody and
// nobody for it: a file system may not answer.
func (r *Reporter) measure(ctx context.Context) {
	for r.o.Volumes != nil && ctx.Err() == nil {
		volumes := r.o.Volumes()
		r.mu.Lock()
		r.volumes = protocol.JudgeVolumes(volumes, r.volumes)
		r.mu.Unlock()
		sleep(ctx, readEvery)
	}
}

// NoRoom tells that the server cannot write, as far as is known.
func (r *Reporter) NoRoom() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return (&protocol.Report{Volumes: r.volumes}).NoRoom() != ""
}

// refresh reads the server's facts when those it has are old.
func (r *Reporter) refresh(ctx context.Context) {
	if !r.o.Server.Running() {
		return
	}
	r.mu.Lock()
	old := r.o.Clock.Now()-r.readAt >= readEvery || r.facts == nil
	before, version := r.facts, r.version
	r.mu.Unlock()
	if !old {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, freshTimeout)
	defer cancel()
	if version == "" {
		if v, err := r.o.Reader.Version(ctx); err == nil {
			r.mu.Lock()
			r.version = v
			r.mu.Unlock()
		}
	}
	after := r.read(ctx)
	if !sameShape(before, after) {
		r.o.Changed()
	}
}

// read reads the facts. A server that does not answer has none.
func (r *Reporter) read(ctx context.Context) *protocol.MySQL {
	started := r.o.Clock.Now()
	facts, err := r.o.Reader.Read(ctx)
	if err != nil {
		r.o.Log.V(1).Info("cannot read the server", "error", err.Error())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.take(facts, started)
	} else if ctx.Err() == nil && started >= r.readAt || r.o.Clock.Now()-r.readAt > freshTimeout {
		r.facts, r.readAt = nil, started
	}
	return r.facts
}

// Fresh reads the server's facts now and returns the report.
func (r *Reporter) Fresh(ctx context.Context) protocol.Report {
	ctx, cancel := context.WithTimeout(ctx, freshTimeout)
	defer cancel()
	started := r.o.Clock.Now()
	if r.o.Server.Running() {
		r.read(ctx)
	}
	report := r.Report()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.readAt < started {
		// What was read before the question is no answer to it.
		report.MySQL = nil
	}
	return report
}

// Report is the present report, with the facts as last read.
func (r *Reporter) Report() protocol.Report {
	st, making := r.o.Server.stage()
	lease := r.o.Keeper.State()
	cluster := r.o.Watcher.Cluster()
	running, wanted, refused := r.o.ConfigHashes()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sequence++
	d := r.decision
	out := protocol.Report{
		Instance: r.o.Instance, PodUID: r.o.PodUID, ClusterUID: r.o.ClusterUID,
		Boot: r.o.Boot, Sequence: r.sequence, ReadAt: r.readWall, ManagerVersion: r.o.Version,
		Server:    serverOf(st, r.version),
		Volumes:   r.volumes,
		Provision: making,
		Role: protocol.Role{
			Name: d.Role, Doing: d.Why, ResumeRefused: d.ResumeRefused,
			PromotionRefused: d.PromotionRefused, PromotionRefusedAttempt: d.PromotionRefusedAttempt,
			Errant: d.Errant, IntentAgeMillis: r.o.Watcher.Age().Milliseconds(),
		},
		Lease: protocol.Lease{
			Held: lease.Held, RenewedAgoMillis: lease.RenewedAgo.Milliseconds(), Fenced: lease.FencedFor >= 0,
			Vouched: lease.Vouched, Peers: lease.Peers,
		},
	}
	if r.o.Heartbeat != nil {
		out.Heartbeat = r.o.Heartbeat()
	}
	if r.o.Reasserts != nil {
		out.Role.Reasserts = r.o.Reasserts()
	}
	out.Server.ConfigHash, out.Server.WantedConfigHash, out.Server.ConfigError = running, wanted, refused
	if out.Role.Name == "" {
		out.Role.Name = role.None
	}
	if cluster != nil {
		out.Role.Generation = cluster.Status.CurrentPrimaryGeneration
	}
	if r.o.Server.Running() {
		out.MySQL = r.facts
	}
	return out
}

func serverOf(st mysqld.State, version string) protocol.Server {
	return protocol.Server{
		State: st.Server, Since: st.Since, Version: version, Restarts: st.Restarts,
		LastExit: st.LastExit, LastError: st.LastError,
	}
}

// Subscribe is a channel with the present report as a JSON line, and each later one that is told; a reader
// that is slow misses some, never the last. The function ends it.
func (r *Reporter) Subscribe() (<-chan []byte, func()) {
	lines := make(chan []byte, 1)
	line := encode(r.Report())
	r.mu.Lock()
	defer r.mu.Unlock()
	lines <- line
	r.watchers[lines] = struct{}{}
	return lines, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.watchers, lines)
	}
}

// tell sends the report to those who watch when there is something to tell, and returns when to look again.
func (r *Reporter) tell() time.Duration {
	report := r.Report()
	material, content := shape(report)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.o.Clock.Now()
	since := now - r.sentAt
	due := r.line == nil || string(material) != string(r.material) || since >= protocol.WatchHeartbeat-readEvery/2 ||
		(since >= readEvery && string(content) != string(r.content))
	if due {
		r.line, r.material, r.content, r.sentAt = encode(report), material, content, now
		for w := range r.watchers {
			offer(w, r.line)
		}
	}
	return readEvery / 2
}

// offer puts a line into a channel of one, in place of one that was not taken.
func offer(lines chan []byte, line []byte) {
	for {
		select {
		case lines <- line:
			return
		default:
		}
		select {
		case <-lines:
		default:
		}
	}
}

func encode(r protocol.Report) []byte {
	b, err := json.Marshal(r)
	if err != nil {
		// The type holds nothing that has no JSON.
		panic("encoding a report: " + err.Error())
	}
	return append(b, '\n')
}
