package agent

import (
	"slices"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// reassertPause is between two openings of a server that somebody else made read-only, where the Cluster names no
// minimum time between failovers.
const reassertPause = 5 * time.Minute

// clockError is how far in the future the record of the last one may lie and still count.
const clockError = 5 * time.Minute

// closing is how this manager knows that a server was made read-only by somebody else: it has opened it, the same
// process still runs, and neither the role nor a fence has closed it since.
type closing struct {
	opened   int    // process id of the server that was opened, 0 when it was closed since
	fences   uint64 // how many fences had begun then
	byOther  int    // process id of the server that somebody else closed, 0 for none
	recorded bool   // the opening that is due is on the Lease
}

// closedByOther looks at what the server says of itself.
func (l *Loop) closedByOther(cluster *api.Cluster, m *protocol.MySQL) *role.Closed {
	c := &l.closing
	pid := l.o.Instance.State().Pid
	if c.opened != 0 && m != nil && !m.Writable() {
		// The facts were read before: a fence that made them so has been counted by now.
		if c.opened == pid && l.o.Keeper.Fences() == c.fences {
			l.o.Log.Info("somebody else made the server read-only")
			c.byOther, c.recorded = pid, false
		}
		c.opened = 0
	}
	if c.byOther == 0 || c.byOther != pid {
		c.byOther = 0
		return nil
	}
	return &role.Closed{Wait: untilReassert(cluster, l.o.Keeper.Recorded(api.AnnotationReasserted), time.Now()), Recorded: c.recorded}
}

// rememberOpening keeps what a step that was carried out means to that.
func (l *Loop) rememberOpening(done role.StepKind) {
	c := &l.closing
	switch done {
	case role.OpenWrites:
		if c.byOther != 0 {
			l.reasserts.Add(1)
		}
		*c = closing{opened: l.o.Instance.State().Pid, fences: l.o.Keeper.Fences()}
	case role.RecordReassert:
		c.recorded = true
		l.o.Log.Info(api.LogReassert, "site", l.o.Name)
	case role.Claim, role.Follow:
		// The role has been elsewhere: what comes is another opening.
		c.byOther = 0
	default:
	}
}

// Reasserts is how often this manager has opened a server that somebody else made read-only.
func (l *Loop) Reasserts() int64 { return l.reasserts.Load() }

// untilReassert is how long the last one, by its record, forbids another. A record that cannot be read, or that lies
// far in the future, forbids nothing.
func untilReassert(cluster *api.Cluster, record string, now time.Time) time.Duration {
	at, err := time.Parse(time.RFC3339, record)
	if err != nil || at.Sub(now) > clockError {
		return 0
	}
	pause := reassertPause
	if cluster != nil && cluster.Spec.FailoverPolicy != nil {
		if d := cluster.Spec.FailoverPolicy.MinTimeBetweenFailovers; d != nil && d.Duration > 0 {
			pause = d.Duration
		}
	}
	return max(0, pause-max(0, now.Sub(at)))
}

// silent are those that were asked and have not answered.
func silent(asked []string, answers []role.Peer) []string {
	return slices.DeleteFunc(slices.Clone(asked), func(name string) bool {
		return slices.ContainsFunc(answers, func(a role.Peer) bool { return a.Instance == name })
	})
}
