package core

import (
	"fmt"
	"slices"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
)

// primaryFailed replaces a primary that has failed: evidence, then the delay, then the lease, then fresh
// facts, then the election.
func (p *pass) primaryFailed() bool {
	if p.pending() != nil {
		return false
	}
	v := p.evidence(p.primary())
	if v.state != failing {
		return false
	}
	if p.failingSinceNow() {
		p.warn(api.EventPrimaryFailing, "the primary %s has failed: %s", p.st.CurrentPrimary, v.why)
	}
	if p.onlyOne() {
		p.soleInstanceFailed(v.why)
		return true
	}
	delay := time.Duration(p.c.Spec.FailoverDelay) * time.Second
	if left := delay - max(p.s.Now.Sub(p.st.PrimaryFailingSince.Time), 0); left > 0 {
		p.outcome(api.PhaseFailingOver, api.ReasonPrimaryFailed, "the primary %s has failed (%s); another instance is promoted after failoverDelay (%d s)", p.st.CurrentPrimary, v.why, p.c.Spec.FailoverDelay)
		p.recheck(left)
		return true
	}
	// A person who fences the primary wants it moved.
	if !p.fenced(p.st.CurrentPrimary) && p.braked(v.why) {
		p.stopPrimaryPod(v.why)
		return true
	}
	if !p.s.Lease.Free() {
		p.outcome(api.PhaseFailingOver, api.ReasonLeaseHeld, "the primary %s has failed (%s); waiting until its lease is released or expired", p.st.CurrentPrimary, v.why)
		p.recheck(p.s.Lease.Remaining())
		p.stopPrimaryPod(v.why)
		return true
	}
	p.failOver(v.why)
	return true
}

// stopPrimaryPod ends a wait that would otherwise have no end: the manager of a primary that has not served for
// too long answers, and goes on renewing the lease, for instance beside a server that hangs. Its Pod is
// stopped, upon which the manager steps down or kills the server, and gives the lease back. That of a fenced one stays:
// its manager does the same for the fence.
func (p *pass) stopPrimaryPod(why string) {
	i := p.primary()
	if i == nil || i.Pod == nil || i.Report == nil || i.going() || p.fenced(i.Name) || i.Report.Role.ResumeRefused != "" || p.patience() > 0 {
		return
	}
	if p.s.Lease.Holder != api.LeaseHolder(i.Name, i.Pod.UID) {
		return
	}
	p.act(Action{Kind: DeletePod, Instance: i.Name, PodUID: i.Pod.UID, Why: "it keeps the primary lease and does not serve: " + why})
	p.warn(api.EventInstanceReplaced, "the Pod %s is stopped and made again: it keeps the primary lease and does not serve (%s)", i.Name, why)
}

func (p *pass) onlyOne() bool {
	for _, i := range p.s.Instances {
		if i.Name != p.st.CurrentPrimary && (p.isMember(i.Name) || i.Pod != nil) {
			return false
		}
	}
	return true
}

// soleInstanceFailed waits for the one instance to come back. Its data is never replaced by an empty server.
func (p *pass) soleInstanceFailed(why string) {
	i := p.primary()
	if i == nil || len(i.MissingVolumes) > 0 || (i.Report != nil && i.Report.Provision != nil) {
		p.block(api.ReasonBootstrapRefused, "the data of %s, the only instance, is gone (%s); an empty server is not made in its place: restore the volume, or delete the Cluster and make it again from a backup", p.st.CurrentPrimary, why)
		return
	}
	p.outcome(api.PhaseDegraded, api.ReasonPrimaryFailed, "the primary %s has failed (%s), and there is no replica; waiting for it to come back", p.st.CurrentPrimary, why)
	if p.fenced(i.Name) {
		p.outcome(api.PhaseDegraded, api.ReasonFenced, "the primary %s is fenced, and there is no replica that could take over", p.st.CurrentPrimary)
	}
	if why, reason := trouble(i); why != "" {
		p.outcome(api.PhaseDegraded, reason, "%s", why)
	}
}

// failOver elects on fresh facts and writes the transition, or says why not.
func (p *pass) failOver(why string) {
	if !p.s.Fresh {
		p.d.Refresh = true
		return
	}
	e := p.elect()
	p.remember(e)
	if e.winner == "" {
		if !p.said(e.reason) {
			p.warn(api.EventFailoverBlocked, "the primary %s has failed (%s), and no instance may be promoted: %s", p.st.CurrentPrimary, why, e.verdict)
		}
		p.block(e.reason, "the primary %s has failed (%s); %s", p.st.CurrentPrimary, why, e.verdict)
		p.recheck(5 * time.Second)
		return
	}
	if e.winner == p.st.CurrentPrimary {
		p.st.PrimaryTransition, p.st.TargetPrimary = nil, e.winner
		p.event(api.EventPrimaryRecovered, "%s came back and resumes: %s", e.winner, e.verdict)
		p.outcome(api.PhaseFailingOver, api.ReasonFailingOver, "%s came back and resumes", e.winner)
		return
	}
	old := p.primary()
	p.start(api.TransitionFailover, p.failoverCause(), e.winner, why)
	p.warn(api.EventFailoverStarted, "the primary %s has failed (%s); %s is promoted: %s", p.st.CurrentPrimary, why, e.winner, e.verdict)
	p.outcome(api.PhaseFailingOver, api.ReasonFailingOver, "%s is being promoted in place of %s", e.winner, p.st.CurrentPrimary)
	if old != nil && old.Pod != nil && old.silent() && !old.going() && !p.fenced(old.Name) {
		p.act(Action{Kind: DeletePod, Instance: old.Name, PodUID: old.Pod.UID, Why: "the former primary does not answer: " + why})
	}
}

// failoverCause tells the failover that a person caused from the operator's own. One under way keeps its cause.
func (p *pass) failoverCause() api.TransitionCause {
	if t := p.pending(); t != nil && t.Kind == api.TransitionFailover && t.Cause != api.CauseFenced {
		return api.CauseFailed
	}
	if p.fenced(p.st.CurrentPrimary) {
		return api.CauseFenced
	}
	return api.CauseFailed
}

// failoverRunning waits for the elected instance, and elects again when it cannot finish.
func (p *pass) failoverRunning() bool {
	t := p.pending()
	if t == nil || t.Kind != api.TransitionFailover {
		return false
	}
	p.outcome(api.PhaseFailingOver, api.ReasonFailingOver, "%s is being promoted in place of %s", t.To, or(t.From, "a primary that is not known"))
	why := p.targetLost(t)
	i := p.s.instance(t.To)
	hangs := why == "" && i.Report != nil && !i.running() && p.s.Now.Sub(t.StartedAt.Time) >= api.PrimaryLeaseTTL
	if hangs {
		// A switchover has its deadline for this.
		why = "its server does not answer its manager"
	}
	if why == "" {
		p.recheck(2 * time.Second)
		return true
	}
	if !p.s.Lease.Free() {
		if hangs {
			// Its manager goes on renewing.
			p.stopTargetPod(t, why)
		}
		p.outcome(api.PhaseFailingOver, api.ReasonLeaseHeld, "%s cannot take the role (%s); waiting until the lease of %s is released or expired", t.To, why, p.s.Lease.Holder)
		p.recheck(p.s.Lease.Remaining())
		return true
	}
	if t.From == "" {
		// There is no history to elect by; the instances are looked at again.
		p.st.PrimaryTransition, p.st.TargetPrimary = nil, ""
		p.outcome(api.PhaseFailingOver, api.ReasonNoPrimary, "%s could not take the role: %s", t.To, why)
		p.recheck(0)
		return true
	}
	p.failOver(fmt.Sprintf("%s could not take over from %s: %s", t.To, t.From, why))
	return true
}

// remember keeps an election in the status; one that came to the same as the last keeps its time.
func (p *pass) remember(e election) {
	next := e.record(p.s.Now)
	if last := p.st.LastElection; last != nil && e.winner == "" && last.Winner == "" && last.Verdict == next.Verdict && slices.Equal(last.Candidates, next.Candidates) {
		return
	}
	p.st.LastElection = next
}
