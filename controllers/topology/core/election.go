package core

import (
	"fmt"
	"math"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
)

// candidate is one instance in an election.
type candidate struct {
	name string
	held gtid.Set
	// preference is its place among the preferred, the lower the more.
	preference int
	backlog    uint64
	missing    uint64
	// unfit is why it cannot be promoted; empty when it can.
	unfit string
	// unread tells that it did not answer, so that what it holds is not known; diverged that it holds what
	// no primary had, which then does not count.
	unread, diverged bool
	// behind tells that nothing but its loss speaks against it.
	behind bool
}

// election is who was considered and what came of it.
type election struct {
	candidates []candidate
	winner     string
	verdict    string
	// reason is why nobody won, for the condition.
	reason string
}

// elect chooses the instance that holds everything every other candidate holds. The snapshot is fresh: the
// old primary could not write any more when the sets were read.
func (p *pass) elect() election {
	e := election{reason: api.ReasonNoSafeCandidate}
	known, problem := p.primaryHistory()
	if problem != "" {
		e.verdict = problem
		return e
	}
	p.markErrant(known)
	for n := range p.s.Instances {
		i := &p.s.Instances[n]
		if !p.isMember(i.Name) || i.Name == p.st.CurrentPrimary && !(i.running() && i.joined()) {
			continue
		}
		c := p.consider(i, known)
		if i.Name == p.st.CurrentPrimary && c.unfit == "" && !p.cameBack(i) {
			// While it can be read its replicas can catch up, and nobody who holds less takes the role.
			c.unfit = "has failed"
		}
		e.candidates = append(e.candidates, c)
	}
	best := p.best(&e)
	if best < 0 {
		e.verdict = "no instance can be promoted: " + e.refusals()
		return e
	}
	for n := range e.candidates {
		c := &e.candidates[n]
		more := c.held.Minus(e.candidates[best].held)
		if n == best || c.unread || c.diverged {
			continue
		}
		if c.unfit != "" {
			if !more.IsEmpty() {
				// What it holds may have been acknowledged, and the winner would refuse.
				e.verdict = fmt.Sprintf("%s holds transactions that %s does not (%s) and cannot be promoted: it %s", c.name, e.candidates[best].name, more, c.unfit)
				return e
			}
			continue
		}
		if !more.IsEmpty() {
			e.verdict = fmt.Sprintf("%s and %s each hold transactions that the other does not (%s only on %s)", e.candidates[best].name, c.name, more, c.name)
			return e
		}
		c.unfit = "holds no more, and " + e.candidates[best].name + " comes first"
	}
	p.award(&e, best)
	return e
}

// best is the candidate that comes first; -1 when there is none.
func (p *pass) best(e *election) int {
	best, author := -1, -1
	for n := range e.candidates {
		c := &e.candidates[n]
		if c.unfit != "" {
			continue
		}
		if best < 0 || c.better(e.candidates[best]) {
			best = n
		}
		if p.isAuthor(c) {
			author = n
		}
	}
	if author >= 0 && p.witnessesMissing(e) && e.candidates[author].held.Contains(e.candidates[best].held) {
		// It needs no witnesses.
		return author
	}
	return best
}

// cameBack tells that the former primary runs again while its replacement cannot finish: it may then hold
// more than anybody else, and is a candidate like the others.
func (p *pass) cameBack(i *Instance) bool {
	return p.pending() != nil && i.running() && i.joined() && i.Report.Role.ResumeRefused == ""
}

// better orders candidates: who holds more, then who is preferred, then who has less to apply. Between equals the
// lower ordinal, which comes first, stays.
func (c candidate) better(than candidate) bool {
	switch {
	case !c.held.Equal(than.held):
		return c.held.Contains(than.held)
	case c.preference != than.preference:
		return c.preference < than.preference
	}
	return c.backlog < than.backlog
}

// primaryHistory is everything that the failed primary is known to have executed: what it had at its promotion,
// and what was recorded of it last.
func (p *pass) primaryHistory() (known gtid.Set, problem string) {
	promoted, err := gtid.Parse(p.st.PromotionGTIDExecuted)
	if err != nil {
		return known, "status.promotionGTIDExecuted cannot be read: " + err.Error()
	}
	if p.st.CurrentPrimaryServerUUID == "" {
		return known, "status.currentPrimaryServerUUID is not recorded, so that the primary's own transactions cannot be told from others"
	}
	last, err := gtid.Parse(p.st.GTIDExecutedByInstance[p.st.CurrentPrimary])
	if err != nil {
		return known, fmt.Sprintf("status.gtidExecutedByInstance[%s] cannot be read: %s", p.st.CurrentPrimary, err)
	}
	return promoted.Union(last), ""
}

// markErrant marks, for this election and for those who take the role by it, the instances that hold what
// the dead primary neither had nor committed.
func (p *pass) markErrant(known gtid.Set) {
	for n := range p.s.Instances {
		i := &p.s.Instances[n]
		if !i.running() || !i.joined() || i.Name == p.st.CurrentPrimary || p.diverged(i.Name) {
			continue
		}
		held := i.Report.MySQL.Held()
		if errant := held.Minus(known).Minus(held.BySource(p.st.CurrentPrimaryServerUUID)); !errant.IsEmpty() {
			p.st.Divergence = append(p.st.Divergence, *p.markDiverged(i.Name, errant, nil))
		}
	}
	p.keepMarks(p.st.Divergence)
}

// consider looks at one instance. A dead source's connection error, an unknown lag or a failed readiness
// probe do not count against it.
func (p *pass) consider(i *Instance, known gtid.Set) candidate {
	c := candidate{name: i.Name, preference: p.preference(i.Name), diverged: p.diverged(i.Name)}
	switch {
	case i.Report == nil:
		c.unfit, c.unread = "does not answer", true
		return c
	case i.Report.Provision != nil:
		c.unfit, c.unread = "does not have its data yet", true
		return c
	case !i.running() && p.fenced(i.Name):
		c.unfit, c.unread = "is fenced", true
		return c
	case !i.running():
		c.unfit, c.unread = "has a server that is "+string(i.Report.Server.State)+" and was not read", true
		return c
	}
	m := i.Report.MySQL
	c.held, c.backlog = m.Held(), m.Unapplied().Count()
	c.missing = known.Minus(c.held).Count()
	switch {
	case c.diverged:
		c.unfit = fmt.Sprintf("holds transactions that the primary did not have: %s", p.mark(i.Name).GTIDSet)
	case m.Replication != nil && m.Replication.SQLErrno != 0:
		c.unfit = fmt.Sprintf("has an applier that stopped with error %d: %s", m.Replication.SQLErrno, m.Replication.SQLError)
	case p.fenced(i.Name):
		c.unfit = "is fenced"
	case i.noRoom() != "":
		c.unfit = "cannot write: " + i.noRoom()
	case i.Pod == nil || i.going():
		c.unfit = "has a Pod that is being stopped"
	case p.unknown(i.Name):
		c.unfit = notAsked
	default:
		c.unfit = p.tooFarBehind(c.missing)
		c.behind = c.unfit != ""
		if c.unfit == "" && c.missing > 0 {
			c.unfit = p.tooLate(i)
		}
	}
	return c
}

// refusals says why each candidate was refused.
func (e election) refusals() string {
	if len(e.candidates) == 0 {
		return "there is no replica"
	}
	var all []string
	var closest *candidate
	for n := range e.candidates {
		c := &e.candidates[n]
		all = append(all, c.name+" "+c.unfit)
		if c.behind && (closest == nil || c.missing < closest.missing) {
			closest = c
		}
	}
	if closest != nil {
		all = append(all, fmt.Sprintf("%s is the closest: to lose its %d transactions set failoverPolicy.maxTransactionsBehind to that, or bring an instance back that has them", closest.name, closest.missing))
	}
	return strings.Join(all, "; ")
}

// record is the election as the status keeps it.
func (e election) record(now time.Time) *api.Election {
	r := &api.Election{At: metav1.NewTime(now), Verdict: e.verdict, Winner: e.winner}
	for _, c := range e.candidates {
		r.Candidates = append(r.Candidates, api.Candidate{
			Instance: c.name, Eligible: c.name == e.winner || c.unfit == "", Reason: c.unfit,
			Missing: int64(min(c.missing, math.MaxInt64)), // #nosec G115 -- bounded
		})
	}
	return r
}
