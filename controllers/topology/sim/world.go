package sim

import (
	"math/rand/v2"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Config is a world without its faults.
type Config struct {
	// Instances is how many there are, 2 to MaxInstances.
	Instances int
	// SemiSync makes commits wait for that many acknowledgements; 0 is asynchronous replication.
	SemiSync int
	// Preferred goes on with a failover that may lose an acknowledged commit, and says so.
	Preferred bool
	// Drift is by how much the rate of a machine's clock may differ from that of the world, in parts per million.
	Drift int
	// FailoverDelay is spec.failoverDelay, in seconds.
	FailoverDelay int32
	// Rules are the shipped ones, or a mutation of them.
	Rules *Rules
}

// World is one run.
type World struct {
	cfg   Config
	rules *Rules
	rng   *rand.Rand
	sets  *Sets
	// t is the time of the world; no process knows it.
	t      time.Duration
	q      queue
	events int
	tell   func(at time.Duration, who, what string)

	nodes []node
	inst  []*instance
	api   apiServer
	op    *operator
	net   network
	led   ledger

	violation *Violation
	// healedAt is when everything was repaired.
	healedAt time.Duration
	passes   int
	turns    int
}

// node is a machine.
type node struct {
	// ppm is how much faster than the world its clock runs, offset what its uptime was at the start, and wall
	// how wrong its date is.
	ppm    int64
	offset time.Duration
	wall   time.Duration
	// awake is when it last went on after a pause, until when its processes have the time to notice.
	awake time.Duration
	down  bool
	// lost tells that it never comes back.
	lost bool
	// paused tells that the machine stands still: its clock goes on.
	paused bool
}

// local is the uptime of a machine by its own clock.
func (n *node) local(t time.Duration) time.Duration {
	return n.offset + t + time.Duration(int64(t)/1_000_000*n.ppm)
}

// real is how long the world waits until d has passed on this machine.
func (n *node) real(d time.Duration) time.Duration {
	return time.Duration(int64(d)*1_000_000/(1_000_000+n.ppm) + 1)
}

// now is the monotonic clock of a process's machine.
func (w *World) now(p *proc) time.Duration { return w.nodes[p.node].local(w.t) }

// epoch is the date at the start, for those whose clocks are right.
var epoch = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// date is the wall clock of a process's machine.
func (w *World) date(p *proc) time.Time {
	n := &w.nodes[p.node]
	return epoch.Add(n.local(w.t) - n.offset + n.wall)
}

// newWorld is a Cluster that was established a while ago: the first instance is the primary in generation 1.
func newWorld(cfg Config, rng *rand.Rand, sets *Sets, tell func(time.Duration, string, string)) *World {
	w := &World{cfg: cfg, rules: cfg.Rules, rng: rng, sets: sets, tell: tell}
	if w.rules == nil {
		w.rules = Shipped()
	}
	w.q.list = make([]event, 0, 256)
	n := cfg.Instances
	w.nodes = make([]node, n+1)
	for i := range w.nodes {
		w.nodes[i] = node{offset: time.Duration(rng.Int64N(int64(24 * time.Hour))), awake: -time.Hour}
		if cfg.Drift > 0 {
			w.nodes[i].ppm = rng.Int64N(int64(2*cfg.Drift+1)) - int64(cfg.Drift)
			w.nodes[i].wall = time.Duration(rng.Int64N(int64(6*time.Hour))) - 3*time.Hour
		}
	}
	w.net.init(n)
	w.led.init(w)
	w.api.init(w)
	for i := range n {
		w.inst = append(w.inst, newInstance(w, i))
	}
	w.op = newOperator(w)
	w.begin()
	return w
}

// begin brings everything to life as it was left by an orderly start.
func (w *World) begin() {
	for _, i := range w.inst {
		i.srv.established()
		i.kubelet.start()
		i.mgr.boot()
		i.mgr.adopt()
	}
	w.op.boot()
	w.after(nil, w.between(100*time.Millisecond, time.Second), w.client)
}

// between is a random time.
func (w *World) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.rng.Int64N(int64(b-a)+1))
}

func (w *World) chance(percent int) bool { return w.rng.IntN(100) < percent }

// name is the name of an instance.
func name(i int) string { return names[i] }

const clusterName, namespace = "c1", "ns"

var names = [MaxInstances]string{"c1-1", "c1-2", "c1-3", "c1-4", "c1-5"}

// ordinal finds an instance by name; -1 when there is none.
func ordinal(instance string) int {
	for i := range names {
		if names[i] == instance {
			return i
		}
	}
	return -1
}

// specOf is the Cluster as its user wrote it.
func specOf(cfg Config) *api.Cluster {
	c := &api.Cluster{}
	c.Name, c.Namespace, c.UID, c.Generation = clusterName, namespace, "cluster", 1
	c.Spec.Instances = int32(cfg.Instances) // #nosec G115 -- at most five
	c.Spec.FailoverDelay = cfg.FailoverDelay
	c.Spec.MaxSwitchoverDelay = 20
	if cfg.SemiSync > 0 {
		c.Spec.MinSyncReplicas = int32(cfg.SemiSync) // #nosec G115 -- at most five
		c.Spec.MySQL.SemiSync = &api.SemiSyncConfiguration{Enabled: true, DataDurability: api.DurabilityRequired}
		if cfg.Preferred {
			c.Spec.MySQL.SemiSync.DataDurability = api.DurabilityPreferred
		}
	}
	c.Default()
	return c
}
