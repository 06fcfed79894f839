package core

import (
	"maps"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
)

// recordEvery is how often the executed sets in the status are refreshed while nothing else happens: they
// change with every write, and a status written with every write would load the API server.
const recordEvery = 30 * time.Second

// judgeReplicas updates what is known of every instance's data and replication.
func (p *pass) judgeReplicas() {
	p.judgeDivergence()
	p.recordKnown()
	p.st.ReplicationBrokenInstances = p.names(p.broken)
	for _, name := range added(p.c.Status.ReplicationBrokenInstances, p.st.ReplicationBrokenInstances) {
		r := p.s.instance(name).Report.MySQL.Replication
		errno, text := r.SQLErrno, r.SQLError
		if errno == 0 {
			errno, text = r.IOErrno, r.IOError
		}
		p.warn(api.EventReplicationBroken, "replication on %s stopped with error %d: %s", name, errno, text)
	}
	p.st.FailedInstances = p.names(func(i *Instance) bool {
		message, _ := trouble(i)
		return p.isMember(i.Name) && (message != "" || i.Pod != nil && i.Pod.Ended != "")
	})
	p.tellTroubles()
	p.recordProvisioning()
	p.recordExecuted()
	p.recordLag()
}

// broken tells that an instance's replication stopped with an error. A connection that was lost because the
// primary changes or is down is none.
func (p *pass) broken(i *Instance) bool {
	if !i.running() || i.Name == p.st.CurrentPrimary || !i.Report.MySQL.Replication.Broken() {
		return false
	}
	settled := p.pending() == nil && i.source() == p.st.CurrentPrimary && p.primaryWritable()
	return i.Report.MySQL.Replication.SQLErrno != 0 || settled
}

// judgeDivergence marks instances that hold what the primary does not. Without a live primary nothing is
// marked by comparison and nothing is cleared: there is nothing to compare with.
func (p *pass) judgeDivergence() {
	primary := p.primary()
	live := primary.writable(p.st.CurrentPrimaryGeneration) && p.pending() == nil
	var kept []api.Divergence
	for n := range p.s.Instances {
		i := &p.s.Instances[n]
		mark := p.mark(i.Name)
		if i.Name == p.st.CurrentPrimary {
			// It is marked only when it is given up with what nobody else has.
			if t := p.pending(); mark != nil && t != nil && t.To != i.Name {
				kept = append(kept, *mark)
			}
			continue
		}
		if live && i.running() {
			mark = p.compare(i, primary, mark)
		}
		if mark != nil {
			kept = append(kept, *mark)
		}
	}
	p.keepMarks(kept)
}

// keepMarks makes these the marks, by ordinal.
func (p *pass) keepMarks(marks []api.Divergence) {
	p.st.Divergence, p.st.DivergedInstances = nil, nil
	for _, i := range p.s.Instances {
		for _, m := range marks {
			if m.Instance == i.Name {
				p.st.Divergence = append(p.st.Divergence, m)
				p.st.DivergedInstances = append(p.st.DivergedInstances, i.Name)
			}
		}
	}
}

// compare judges a reachable instance against the live primary. What the primary itself committed does not
// count: the instance may have been read after it. Everything else the primary held before it was promoted.
func (p *pass) compare(i, primary *Instance, mark *api.Divergence) *api.Divergence {
	held, executed := i.Report.MySQL.Held(), primary.Report.MySQL.Executed
	errant := held.Minus(executed).Minus(held.BySource(primary.Report.MySQL.ServerUUID))
	if errant.IsEmpty() {
		if mark != nil && executed.Contains(held) {
			return nil
		}
		return mark
	}
	return p.markDiverged(i.Name, errant, mark)
}

// markDiverged makes or renews the mark of an instance.
func (p *pass) markDiverged(name string, errant gtid.Set, mark *api.Divergence) *api.Divergence {
	if mark == nil {
		now := metav1.NewTime(p.s.Now)
		mark = &api.Divergence{Instance: name, Since: &now}
		p.warn(api.EventDiverged, "%s holds transactions that the primary %s does not, and is kept out of service with its data: %s", name, p.st.CurrentPrimary, errant)
	}
	mark.GTIDSet = errant.String()
	mark.Count = int64(min(errant.Count(), math.MaxInt64)) // #nosec G115 -- bounded
	return mark
}

func (p *pass) mark(name string) *api.Divergence {
	for _, d := range p.st.Divergence {
		if d.Instance == name {
			return d.DeepCopy()
		}
	}
	return nil
}

// fenced tells that a person took an instance out of service.
func (p *pass) fenced(name string) bool { return slices.Contains(p.st.FencedInstances, name) }

func (p *pass) diverged(name string) bool { return slices.Contains(p.st.DivergedInstances, name) }

func (p *pass) recordProvisioning() {
	p.st.Provisioning = nil
	for _, i := range p.s.Instances {
		if i.Report == nil || i.Report.Provision == nil {
			continue
		}
		pr := i.Report.Provision
		p.st.Provisioning = append(p.st.Provisioning, api.InstanceProvisioning{
			Instance: i.Name, Step: pr.Step, Percent: pr.Percent / 10 * 10, Attempts: pr.Attempts, LastError: pr.LastError,
		})
	}
}

// recordKnown keeps which instances the primary knows of, as its own reports tell.
func (p *pass) recordKnown() {
	i := p.primary()
	if !i.writable(p.st.CurrentPrimaryGeneration) || len(i.Report.Lease.Peers) == 0 {
		return
	}
	known := func(name string) bool {
		return name == i.Name || slices.Contains(p.st.PrimaryKnows, name) || slices.Contains(i.Report.Lease.Peers, name)
	}
	p.st.PrimaryKnows = slices.DeleteFunc(slices.Clone(p.st.InstanceNames), func(name string) bool { return !known(name) })
}

// notAsked is why an instance that the primary does not know is not promoted.
const notAsked = "was made after the primary was last heard, which may go on by the word of the instances it knows until it gives its lease back"

// unknown tells that an instance was made after the primary last read the Cluster, as far as is known. A lease that was
// given back binds nobody any more.
func (p *pass) unknown(name string) bool {
	return len(p.st.PrimaryKnows) > 0 && p.s.Lease.Holder != "" && !slices.Contains(p.st.PrimaryKnows, name)
}

// recordExecuted keeps the last executed set seen of every instance. That of a failed primary stays: the
// next election measures its loss by it.
func (p *pass) recordExecuted() {
	next := map[string]string{}
	fresh := false
	for _, i := range p.s.Instances {
		old, known := p.st.GTIDExecutedByInstance[i.Name]
		if known && (p.isMember(i.Name) || i.Name == p.st.CurrentPrimary) {
			next[i.Name] = old
		}
		if i.running() && i.joined() && p.isMember(i.Name) {
			next[i.Name] = i.Report.MySQL.Executed.String()
			fresh = fresh || !known
		}
	}
	if old, ok := p.st.GTIDExecutedByInstance[p.st.CurrentPrimary]; ok && next[p.st.CurrentPrimary] == "" {
		next[p.st.CurrentPrimary] = old
	}
	due := p.st.GTIDExecutedUpdatedAt == nil || p.s.Now.Sub(p.st.GTIDExecutedUpdatedAt.Time) >= recordEvery
	if maps.Equal(next, p.st.GTIDExecutedByInstance) || !due && !fresh && len(next) == len(p.st.GTIDExecutedByInstance) {
		return
	}
	now := metav1.NewTime(p.s.Now)
	p.st.GTIDExecutedByInstance, p.st.GTIDExecutedUpdatedAt = next, &now
}

// names lists the instances that fulfil a condition.
func (p *pass) names(is func(*Instance) bool) []string {
	var out []string
	for n := range p.s.Instances {
		if is(&p.s.Instances[n]) {
			out = append(out, p.s.Instances[n].Name)
		}
	}
	return out
}

// added lists what is in next and not in previous.
func added(previous, next []string) []string {
	var out []string
	for _, name := range next {
		if !slices.Contains(previous, name) {
			out = append(out, name)
		}
	}
	return out
}

// lastRecorded is the executed set recorded of an instance; empty when none is or it cannot be read.
func (p *pass) lastRecorded(name string) gtid.Set {
	s, err := gtid.Parse(p.st.GTIDExecutedByInstance[name])
	if err != nil {
		return gtid.Set{}
	}
	return s
}
