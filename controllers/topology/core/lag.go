package core

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/operator/instance/protocol"
)

// lag is how far an instance is behind the primary by now, by the heartbeat; known is false where nobody can say.
func (i *Instance) lag() (lag time.Duration, known bool) {
	if !i.running() {
		return 0, false
	}
	lag, known = i.Report.Lag()
	return lag + i.Age, known
}

// later is the instance when nothing was stamped for a time.
func (i Instance) later(d time.Duration) Instance {
	lag, known := i.Report.Lag()
	if !known {
		return i
	}
	report := *i.Report
	report.Heartbeat = &protocol.Heartbeat{LagMillis: new((lag + d).Milliseconds())}
	i.Report = &report
	return i
}

// heldBack tells that a replica is kept from being Ready by maxReadyLag.
func (p *pass) heldBack(i *Instance) bool {
	bound := p.c.MaxReadyLag()
	if bound == 0 || !i.running() || !i.joined() || i.Pod == nil || i.Pod.Ready || i.Name == p.st.CurrentPrimary {
		return false
	}
	lag, known := i.lag()
	return !known || lag > bound
}

// tooLate says that an instance which misses transactions had fallen behind the primary by more than failoverPolicy
// allows when that failed; empty when not.
func (p *pass) tooLate(i *Instance) string {
	f := p.c.Spec.FailoverPolicy
	if f == nil || f.MaxReplicationLag == nil {
		return ""
	}
	bound := f.MaxReplicationLag.Duration
	lag, known := i.lag()
	if !known {
		return fmt.Sprintf("misses transactions, and no heartbeat tells how far behind it was, which maxReplicationLag (%s) bounds", bound)
	}
	// Since then nobody has stamped.
	if since := p.st.PrimaryFailingSince; since != nil {
		lag -= max(p.s.Now.Sub(since.Time), 0)
	}
	if lag = max(lag, 0); lag <= bound {
		return ""
	}
	return fmt.Sprintf("misses transactions and was %s behind the primary when that failed, more than maxReplicationLag (%s)", lag.Round(time.Second), bound)
}

// recordLag keeps how far every replica is behind. What a replica that is not behind can be measured to be is recorded as
// nothing, so that a Cluster to which nothing happens is not written.
func (p *pass) recordLag() {
	next := map[string]int64{}
	for n := range p.s.Instances {
		i := &p.s.Instances[n]
		lag, known := i.lag()
		if !known || !p.isMember(i.Name) || i.Name == p.st.CurrentPrimary {
			continue
		}
		next[i.Name] = 0
		if lag >= 2*p.c.HeartbeatInterval()+lagNoise {
			next[i.Name] = lag.Round(time.Second).Milliseconds()
		}
	}
	due := p.st.ReplicationLagUpdatedAt == nil || p.s.Now.Sub(p.st.ReplicationLagUpdatedAt.Time) >= recordEvery
	if !due || maps.Equal(next, p.st.ReplicationLagByInstance) {
		return
	}
	now := metav1.NewTime(p.s.Now)
	p.st.ReplicationLagByInstance, p.st.ReplicationLagUpdatedAt = next, &now
	if len(next) == 0 {
		p.st.ReplicationLagByInstance = nil
	}
}

// lagNoise is how far behind a replica may seem to be which is not, besides one interval of the heartbeat between two stamps
// and one between two readings: the time between two reports, and a second for stamp and reading to be late.
const lagNoise = protocol.WatchHeartbeat + time.Second

// heldBackNames are the replicas that maxReadyLag keeps from being Ready.
func (p *pass) heldBackNames() []string {
	return slices.DeleteFunc(p.names(p.heldBack), func(name string) bool { return !p.isMember(name) })
}
