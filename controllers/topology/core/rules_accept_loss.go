package core

import (
	"fmt"
	"slices"
	"strings"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
)

// lossAccepted follows a person who named an instance and what may be lost by promoting it. That lifts the bounds
// of an election and nothing of the rest: the old primary cannot write any more, and what is lost is no more than was
// said, as far as anybody who answers knows.
func (p *pass) lossAccepted() bool {
	text, there := p.c.Annotations[api.AnnotationAcceptLoss]
	if !there || p.st.CurrentPrimary == "" {
		return false
	}
	to, accepted, problem := p.readAcceptance(text)
	v := p.evidence(p.primary())
	switch {
	case problem != "":
	case v.state == healthy && p.pending() == nil:
		problem = "the primary is writable, so that nothing need be lost; write status.targetPrimary for a switchover"
	case v.state != failing && (v.state != stuck || p.patience() > 0):
		// It may be alive. It will come back, or be known to have failed.
		return false
	case !p.s.Lease.Free():
		p.failingSinceNow()
		p.outcome(api.PhaseFailingOver, api.ReasonLeaseHeld, "%s is to be promoted with an accepted loss; waiting until the lease of %s is released or expired", to, p.s.Lease.Holder)
		p.recheck(p.s.Lease.Remaining())
		p.stopPrimaryPod(v.why)
		return true
	case !p.s.Fresh:
		p.d.Refresh = true
		return true
	default:
		problem = p.acceptable(to, accepted)
	}
	p.clear = &Action{Kind: ClearAcceptLoss, Instance: p.c.Name, Value: text, Why: "it was answered"}
	if problem != "" {
		p.warn(api.EventAcceptLossRefused, "the annotation %s=%s is not followed: %s", api.AnnotationAcceptLoss, text, problem)
		return false
	}
	p.promoteWithLoss(to, accepted)
	return true
}

// readAcceptance reads "<instance>=<GTID set>".
func (p *pass) readAcceptance(text string) (to string, accepted gtid.Set, problem string) {
	to, loss, ok := strings.Cut(text, "=")
	to = strings.TrimSpace(to)
	if !ok {
		return to, accepted, "it must be <instance>=<GTID set>; the set is empty if nothing may be lost"
	}
	if !p.isMember(to) {
		return to, accepted, fmt.Sprintf("there is no instance %q", to)
	}
	accepted, err := gtid.Parse(loss)
	if err != nil {
		return to, accepted, err.Error()
	}
	return to, accepted, ""
}

// acceptable says why an instance cannot be promoted even so.
func (p *pass) acceptable(to string, accepted gtid.Set) string {
	i := p.s.instance(to)
	switch {
	case i == nil || i.Pod == nil || i.going():
		return to + " has no Pod that stays"
	case p.fenced(to):
		return to + " is fenced"
	case !i.running() || !i.joined():
		return to + " does not answer"
	case p.unknown(to):
		return to + " " + notAsked
	case i.Report.MySQL.Replication != nil && i.Report.MySQL.Replication.SQLErrno != 0:
		return fmt.Sprintf("%s has an applier that stopped with error %d: %s", to, i.Report.MySQL.Replication.SQLErrno, i.Report.MySQL.Replication.SQLError)
	}
	held := i.Report.MySQL.Held()
	lost := gtid.Set{}
	if known, problem := p.primaryHistory(); problem == "" {
		lost = known.Minus(held)
	}
	for n := range p.s.Instances {
		o := &p.s.Instances[n]
		if o.Name == to || !o.running() || !o.joined() {
			continue
		}
		more := o.Report.MySQL.Held().Minus(held)
		if again := more.BySource(i.Report.MySQL.ServerUUID); !again.IsEmpty() {
			return fmt.Sprintf("%s holds transactions that the server of %s committed and lost (%s): their numbers would be given out a second time; name %s, or remove its Pod and its volume claim first", o.Name, to, again, o.Name)
		}
		lost = lost.Union(more)
	}
	if beyond := lost.Minus(accepted); !beyond.IsEmpty() {
		return fmt.Sprintf("more than was accepted would be lost: %s; all that would be lost is %s", beyond, lost)
	}
	return ""
}

// promoteWithLoss writes the transition. Who holds more is marked as diverged, so that nobody waits for it and its
// data stay; the one that was chosen is the truth from now on.
func (p *pass) promoteWithLoss(to string, accepted gtid.Set) {
	p.failingSinceNow()
	chosen := p.s.instance(to).Report.MySQL.Held()
	p.st.Divergence = slices.DeleteFunc(p.st.Divergence, func(d api.Divergence) bool { return d.Instance == to })
	for n := range p.s.Instances {
		o := &p.s.Instances[n]
		if o.Name == to || !o.running() || !o.joined() {
			continue
		}
		if more := o.Report.MySQL.Held().Minus(chosen); !more.IsEmpty() {
			before := p.mark(o.Name)
			p.st.Divergence = slices.DeleteFunc(p.st.Divergence, func(d api.Divergence) bool { return d.Instance == o.Name })
			p.st.Divergence = append(p.st.Divergence, *p.markDiverged(o.Name, more, before))
		}
	}
	p.keepMarks(p.st.Divergence)
	p.start(api.TransitionFailover, api.CauseAcceptedLoss, to, "a loss was accepted")
	p.warn(api.EventLossAccepted, "%s is promoted as was asked for, with the loss that was accepted: %s", to, or(accepted.String(), "none"))
	p.outcome(api.PhaseFailingOver, api.ReasonFailingOver, "%s is being promoted with a loss that was accepted", to)
}
