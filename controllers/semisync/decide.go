package semisync

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

// raise is a higher number of acknowledgements that the primary already waits for and the status does not
// show yet.
type raise struct {
	generation int64
	boot       string
	waitFor    int32
	// sequence is of the report in which the primary was first seen to wait for that many. The facts of one
	// report are not of one instant, so only a later one is certain to hold all that was committed before.
	sequence uint64
	// executed is what the primary had executed in such a later report, once read is true.
	executed gtid.Set
	read     bool
}

// decision is what is to be done, in this order: status, then remembering, then settings.
type decision struct {
	status    *api.SemiSyncStatus
	condition metav1.Condition
	// settings is what the primary is asked for; nil when it needs nothing.
	settings *protocol.SemiSyncSettings
	primary  string
	// cloning are the instances for which commits are let go.
	cloning []string
	memory
	// waits tells that something is waited for that no event may tell of.
	waits bool
}

func decide(f facts) decision {
	c := f.cluster
	d := decision{primary: c.Status.CurrentPrimary}
	primary := f.primary()
	if !c.SemiSyncEnabled() {
		d.condition = offCondition(primary)
		return d
	}
	ackers := f.ackers()
	want := f.wanted(primary, ackers)
	now := &api.SemiSyncStatus{Configured: c.Spec.MinSyncReplicas, Ackers: ackers}
	if before := c.Status.SemiSync; before != nil {
		now.Effective, now.Active = min(before.Effective, want), before.Active
	}
	d.status = now
	if primary != nil {
		s := primary.MySQL.SemiSync
		now.Active = s.SourceEnabled && s.SourceActive
		now.Effective = min(now.Effective, published(s))
		if s.SourceEnabled && s.WaitFor != int(want) {
			d.settings = &protocol.SemiSyncSettings{WaitFor: int(want), Generation: c.Status.CurrentPrimaryGeneration}
		}
		d.raise(f, primary, ackers, want)
		d.waits = d.raising != nil
		d.letGo(f, primary)
	}
	d.condition = f.condition(primary, ackers, int(want))
	return d
}

// letGoAfter is how long commits may keep a clone from its end: somebody may come back who acknowledges.
const letGoAfter = 10 * time.Second

// letGo has the primary give up commits that wait for acknowledgements when these do not come and the clone of a replica
// stands still: its end waits until no transaction is between the binary log and its commit, and they wait for the replica.
func (d *decision) letGo(f facts, primary *protocol.Report) {
	s := primary.MySQL.SemiSync
	// A replica that is gone may be taken for a connected one until TCP gives it up. The stamp that waits knows better.
	waited := primary.Heartbeat != nil && primary.Heartbeat.WaitingMillis >= letGoAfter.Milliseconds()
	if len(f.cloning) == 0 || s.CanAcknowledge() && !waited {
		return
	}
	d.waits = true
	if s.Waiting == 0 || primary.NoRoom() != "" {
		return
	}
	d.stuck = f.stuck
	if d.stuck.IsZero() {
		d.stuck = f.now
	}
	if d.settings == nil && f.now.Sub(d.stuck) >= letGoAfter {
		d.settings = &protocol.SemiSyncSettings{WaitFor: s.WaitFor, Generation: f.cluster.Status.CurrentPrimaryGeneration, LetGo: true}
		d.cloning, d.stuck = f.cloning, f.now
	}
}

// wanted is how many acknowledgements each commit is to wait for: as many as are configured, or, where availability goes
// first, as there are replicas to give them, and at least one. A primary that is not heard keeps the number it has.
func (f facts) wanted(primary *protocol.Report, ackers []string) int32 {
	configured := f.cluster.Spec.MinSyncReplicas
	if primary == nil || f.cluster.Spec.MySQL.SemiSync.DataDurability == api.DurabilityRequired {
		return configured
	}
	n := max(int32(len(ackers)), 1) // #nosec G115 -- at most 100
	if before := f.cluster.Status.SemiSync; f.unasked && before != nil {
		// An operator that has just started lowers nothing before it has asked everybody.
		n = max(n, before.Effective)
	}
	return min(configured, n)
}

// published is the most that the status may show of a primary with these settings. A source side that is
// switched off for a moment (a role change) says nothing about commits that were acknowledged before.
func published(s protocol.SemiSync) int32 {
	if !s.SourceEnabled {
		return maxInstances
	}
	return int32(min(s.WaitFor, maxInstances)) // #nosec G115 -- bounded
}

// maxInstances is above every number of acknowledgements.
const maxInstances = 100

// raise shows the wanted number once that many replicas hold what the primary had executed when it was first
// seen to wait for them.
func (d *decision) raise(f facts, primary *protocol.Report, ackers []string, want int32) {
	s := primary.MySQL.SemiSync
	if d.status.Effective >= want || !s.SourceEnabled || s.WaitFor != int(want) {
		return
	}
	r := f.raise(primary, want)
	d.raising = r
	if !r.read {
		return
	}
	holding := int32(0)
	for _, a := range ackers {
		if f.reports[a].MySQL.Held().Contains(r.executed) {
			holding++
		}
	}
	if holding >= want {
		d.status.Effective, d.raising = want, nil
	}
}

// raise is the raise under way as this report carries it on, or a new one.
func (f facts) raise(primary *protocol.Report, want int32) *raise {
	generation := f.cluster.Status.CurrentPrimaryGeneration
	r := f.raising
	if r == nil || r.generation != generation || r.boot != primary.Boot || r.waitFor != want {
		return &raise{generation: generation, boot: primary.Boot, waitFor: want, sequence: primary.Sequence}
	}
	if !r.read && primary.Sequence > r.sequence {
		on := *r
		on.executed, on.read = primary.MySQL.Executed, true
		return &on
	}
	return r
}

// primary is the report of the instance that now has the role, as it has it; nil when it is not heard.
func (f facts) primary() *protocol.Report {
	report := f.reports[f.cluster.Status.CurrentPrimary]
	if report == nil || report.Role.Name != api.RolePrimary || report.Role.Generation != f.cluster.Status.CurrentPrimaryGeneration {
		return nil
	}
	return report
}

// ackers are the replicas that acknowledge the current primary's commits. Whether they are Ready does not
// matter: one that lags too far to be read from still acknowledges.
func (f facts) ackers() []string {
	var names []string
	for name, report := range f.reports {
		m := report.MySQL
		if f.attached(name) && m.SemiSync.ReplicaEnabled && m.SemiSync.ReplicaActive {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// attached tells whether an instance receives from the current primary and may count.
func (f facts) attached(name string) bool {
	c := f.cluster
	r := f.reports[name].MySQL.Replication
	return name != c.Status.CurrentPrimary && !slices.Contains(c.Status.DivergedInstances, name) &&
		r != nil && r.IORunning && r.Connected && protocol.HostInstance(r.SourceHost) == c.Status.CurrentPrimary
}
