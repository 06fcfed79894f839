package core

import (
	"fmt"
	"strings"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
)

// award gives the role to the best candidate, unless an acknowledged commit may be with instances that were not
// read, and these are about to answer or the specification does not allow to go on without it.
func (p *pass) award(e *election, best int) {
	name := e.candidates[best].name
	verdict := "it holds everything that is known of the primary"
	if n := e.candidates[best].missing; n > 0 {
		verdict = fmt.Sprintf("it misses %d transactions that the primary was last known to have", n)
	}
	unread := p.unread(e)
	if len(unread) > 0 {
		verdict += "; not asked, because they do not answer: " + strings.Join(unread, ", ")
	}
	required := p.c.Spec.MySQL.SemiSync != nil && p.c.Spec.MySQL.SemiSync.DataDurability == api.DurabilityRequired
	awaited, left := p.awaited(e)
	switch {
	case !p.witnessesMissing(e):
		e.winner, e.verdict, e.reason = name, verdict, ""
		return
	case p.isAuthor(&e.candidates[best]):
		e.winner, e.verdict, e.reason = name, verdict+", and what was acknowledged in this generation is its own", ""
		return
	case !required && awaited != "":
		p.recheck(left)
		e.reason = api.ReasonWitnessesMissing
		e.verdict = fmt.Sprintf("an acknowledged commit may exist only on instances that do not answer yet (%s); they are being started, and waited for until %d s after the primary failed",
			awaited, int(witnessBound.Seconds()))
		e.candidates[best].unfit = "waits for " + awaited
		return
	case !required:
		e.winner, e.verdict, e.reason = name, verdict+", so that an acknowledged commit may exist only there", ""
		return
	}
	e.reason = api.ReasonWitnessesMissing
	e.verdict = fmt.Sprintf("an acknowledged commit may exist only on instances that do not answer (%s): %s of them must answer before %s is promoted, or mysql.semiSync.dataDurability be set to preferred",
		strings.Join(unread, ", "), atLeast(len(unread)-p.acknowledgements()+1), name)
	// The best candidate has no fault of its own, and is not promoted all the same.
	e.candidates[best].unfit = "waits for " + strings.Join(unread, ", ")
}

// witnessesMissing tells that as many replicas were not read as acknowledge a commit.
func (p *pass) witnessesMissing(e *election) bool {
	need := p.acknowledgements()
	return need > 0 && len(p.unread(e)) >= need
}

// witnessBound is how long after the primary failed its replicas that are being started are waited for, where it may go on
// without them: when all Pods were ended at once they come back one after the other within seconds.
const witnessBound = 45 * time.Second

// awaited are the instances that could have acknowledged a commit, were not read, and are about to answer; empty when there
// are none, or they were waited for long enough. left is for how much longer they are.
func (p *pass) awaited(e *election) (who string, left time.Duration) {
	since := p.st.PrimaryFailingSince
	if since == nil {
		return "", 0
	}
	left = witnessBound - max(p.s.Now.Sub(since.Time), 0)
	if left <= 0 {
		return "", 0
	}
	var names []string
	for _, name := range p.unread(e) {
		if p.s.instance(name).coming() {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", "), left
}

// isAuthor tells that a candidate is the current primary and lost nothing that is known of it: it held each commit
// of this generation before anybody acknowledged that.
func (p *pass) isAuthor(c *candidate) bool {
	return c.name == p.st.CurrentPrimary && c.missing == 0
}

func atLeast(n int) string {
	if n == 1 {
		return "one"
	}
	return fmt.Sprintf("%d", n)
}

// unread are the replicas that could have acknowledged a commit and whose data was not read: they had their data
// once, and either do not answer or are being made anew.
func (p *pass) unread(e *election) []string {
	var names []string
	for _, c := range e.candidates {
		if _, joined := p.st.GTIDExecutedByInstance[c.name]; c.unread && joined {
			name := c.name
			if p.fenced(name) {
				name += " (fenced)"
			}
			names = append(names, name)
		}
	}
	return names
}

// acknowledgements is how many replicas held a commit before it was answered; 0 without semi-synchronous
// replication. While it is configured and nobody has seen yet how many the primary waits for, it is one: a
// primary with that switched on waits for no fewer.
func (p *pass) acknowledgements() int {
	effective := 0
	if s := p.st.SemiSync; s != nil {
		effective = int(s.Effective)
	}
	if p.c.SemiSyncEnabled() {
		return max(effective, 1)
	}
	return effective
}
