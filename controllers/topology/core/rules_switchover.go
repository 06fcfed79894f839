package core

import (
	"fmt"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

// switchoverRunning sees a switchover to its end. It ends with a writable primary or a failover, never with
// two: before the old primary may resume, the target cannot write.
func (p *pass) switchoverRunning() bool {
	t := p.pending()
	if t == nil || t.Kind != api.TransitionSwitchover {
		return false
	}
	p.moves(t)
	held := p.s.Lease.HeldBy(t.To)
	if p.st.TargetPrimary == t.From && !held {
		p.withdraw(t, "it was cancelled")
		return true
	}
	if why := p.sourceLost(t); why != "" {
		p.replaceSwitchover(t, why)
		return true
	}
	why := p.targetLost(t)
	if left := p.remaining(t); why == "" && left > 0 {
		p.recheck(left)
		return true
	} else if why == "" {
		why = fmt.Sprintf("it did not finish within maxSwitchoverDelay (%d s)", p.c.Spec.MaxSwitchoverDelay)
	}
	if held {
		p.stopTargetPod(t, why)
		return true
	}
	p.withdraw(t, why)
	return true
}

func (p *pass) moves(t *api.PrimaryTransition) {
	p.outcome(api.PhaseSwitchover, api.ReasonSwitchover, "the primary moves from %s to %s (%s)", t.From, t.To, t.Reason)
}

func (p *pass) remaining(t *api.PrimaryTransition) time.Duration {
	if t.Deadline == nil {
		return time.Duration(1<<63 - 1)
	}
	return t.Deadline.Sub(p.s.Now)
}

// withdraw ends a switchover before the target has the lease: the old primary resumes.
func (p *pass) withdraw(t *api.PrimaryTransition, why string) {
	p.st.PrimaryTransition = nil
	p.st.TargetPrimary = t.From
	p.rememberFailback(t, why)
	if p.st.PrimaryFailingSince != nil {
		// Whoever wants to move the role again waits as long as for the first time.
		now := p.now()
		p.st.PrimaryFailingSince = &now
	}
	p.warn(api.EventSwitchoverAborted, "the switchover from %s to %s was ended: %s", t.From, t.To, why)
	p.outcome(api.PhaseSwitchover, api.ReasonSwitchover, "the switchover to %s was ended (%s); %s resumes", t.To, why, t.From)
}

// stopTargetPod takes the lease away from a target that cannot finish: its Pod is deleted, and nothing else
// happens until it has released the lease or the lease has expired.
func (p *pass) stopTargetPod(t *api.PrimaryTransition, why string) {
	p.outcome(api.PhaseSwitchover, api.ReasonLeaseHeld, "%s cannot take the role (%s); waiting until its lease is released or expired", t.To, why)
	p.recheck(p.s.Lease.Remaining())
	// A Pod that was made anew meanwhile does not hold the lease, and a fenced one gives it back by itself.
	if i := p.s.instance(t.To); i != nil && i.Pod != nil && !p.fenced(t.To) && !i.going() && p.s.Lease.Holder == api.LeaseHolder(t.To, i.Pod.UID) {
		p.act(Action{Kind: DeletePod, Instance: t.To, PodUID: i.Pod.UID, Why: "it is the target of a switchover that is being ended, and keeps the lease: " + why})
	}
}

// sourceLost says why the old primary cannot hand over any more. That it is read-only is no reason: it is
// what was asked of it. A handoff that the target holds in full needs no old primary.
func (p *pass) sourceLost(t *api.PrimaryTransition) string {
	i, to := p.s.instance(t.From), p.s.instance(t.To)
	handedOver := p.s.Lease.HandoffAttempt == t.Attempt && p.s.Lease.Handoff != nil
	if handedOver && to.running() && to.Report.MySQL.Held().Contains(*p.s.Lease.Handoff) {
		return ""
	}
	if i.running() {
		switch {
		case handedOver || !p.s.Lease.Known || api.HolderInstance(p.s.Lease.Holder) == t.To:
			return ""
		case p.s.Lease.Holder == "":
			return "it released its lease without a handoff"
		case p.s.Lease.Expired():
			return "it does not renew its lease any more"
		case i.noRoom() != "" && p.s.Now.Sub(t.StartedAt.Time) >= p.bound():
			return i.noRoom() + ", so that it cannot hand over"
		}
		return ""
	}
	v := p.evidence(i)
	if v.state == opening {
		// Its server hangs: the time that a primary may not serve runs.
		p.failingSinceNow()
		p.recheck(v.again)
	}
	if v.state != failing {
		return ""
	}
	return v.why
}

// replaceSwitchover turns a switchover whose old primary died into a failover.
func (p *pass) replaceSwitchover(t *api.PrimaryTransition, why string) {
	p.failingSinceNow()
	if !p.s.Lease.Free() && !p.s.Lease.HeldBy(t.To) {
		p.outcome(api.PhaseFailingOver, api.ReasonLeaseHeld, "%s failed during the switchover (%s); waiting until its lease is released or expired", t.From, why)
		p.recheck(p.s.Lease.Remaining())
		p.stopPrimaryPod(why)
		return
	}
	p.failOver(fmt.Sprintf("%s failed during a switchover: %s", t.From, why))
}

// targetLost says why the target of a transition cannot finish.
func (p *pass) targetLost(t *api.PrimaryTransition) string {
	i := p.s.instance(t.To)
	switch {
	case i == nil || i.Pod == nil:
		return "its Pod is gone"
	case i.going():
		return "its Pod is being stopped"
	case p.fenced(i.Name):
		return "it is fenced"
	case i.silent() && !i.Pod.Ready:
		return "its manager does not answer and its Pod is not Ready"
	case i.Report == nil:
		return ""
	case i.Report.Role.PromotionRefusedAttempt == t.Attempt:
		return i.Report.Role.PromotionRefused
	case i.Report.Server.State != protocol.ServerRunning:
		return "its server is " + string(i.Report.Server.State)
	case p.diverged(i.Name):
		return "it has diverged from the primary"
	}
	return ""
}

// switchoverAsked validates what a user wrote to targetPrimary.
func (p *pass) switchoverAsked() bool {
	to := p.st.TargetPrimary
	if to == "" || to == p.st.CurrentPrimary || p.pending() != nil {
		return false
	}
	if why := p.unfit(to); why != "" {
		p.st.TargetPrimary = p.st.CurrentPrimary
		p.warn(api.EventSwitchoverRefused, "%s cannot become the primary: %s", to, why)
		p.outcome(api.PhaseReady, api.ReasonHealthy, "")
		return true
	}
	if p.primary().noRoom() != "" {
		// It may not be able to hand over: the time that it may not serve runs.
		p.failingSinceNow()
	}
	p.start(api.TransitionSwitchover, api.CauseAsked, to, "asked for")
	p.event(api.EventSwitchoverStarted, "the primary moves from %s to %s", p.st.CurrentPrimary, to)
	p.moves(p.st.PrimaryTransition)
	return true
}

// unfit says why an instance may not be the target of a switchover; nothing was demoted yet.
func (p *pass) unfit(name string) string {
	i := p.s.instance(name)
	switch {
	case i == nil || !p.isMember(name):
		return "there is no such instance"
	case i.Pod == nil:
		return "it has no Pod"
	case i.going():
		return "its Pod is being deleted"
	case p.diverged(name):
		return "it has diverged from the primary"
	case p.fenced(name):
		return "it is fenced"
	case i.Report == nil:
		return "its instance manager does not answer"
	case !i.joined():
		return "it does not have its data yet"
	case !i.running():
		return "its server is not running"
	case i.noRoom() != "":
		return i.noRoom()
	case i.Report.MySQL.Replication == nil:
		return "it is not a replica"
	case i.source() != p.st.CurrentPrimary:
		return fmt.Sprintf("it replicates from %s, not from the current primary %s", i.source(), p.st.CurrentPrimary)
	}
	r := i.Report.MySQL.Replication
	switch {
	case r.SQLErrno != 0:
		return fmt.Sprintf("its applier stopped with error %d: %s", r.SQLErrno, r.SQLError)
	case r.IOErrno != 0 && !r.IORunning:
		return fmt.Sprintf("its receiver stopped with error %d: %s", r.IOErrno, r.IOError)
	case !r.IORunning || !r.SQLRunning:
		return "its replication is stopped"
	case !r.Connected:
		return "it has no connection to the current primary"
	case r.SecondsBehind != nil && *r.SecondsBehind > int64(p.c.Spec.MaxSwitchoverDelay):
		return fmt.Sprintf("it is %d s behind, more than maxSwitchoverDelay (%d s)", *r.SecondsBehind, p.c.Spec.MaxSwitchoverDelay)
	}
	return ""
}

// primaryGoing moves the role away from a primary whose Pod is being stopped.
func (p *pass) primaryGoing() bool {
	i := p.primary()
	if i == nil || !i.going() || !p.drains() || p.pending() != nil || !i.writable(p.st.CurrentPrimaryGeneration) {
		return false
	}
	p.outcome(api.PhaseDegraded, api.ReasonInstancesNotReady, "%s is being stopped, and no replica can take over", i.Name)
	p.recheck(time.Second)
	if to := p.bestReplica(nil); to != "" {
		p.start(api.TransitionSwitchover, api.CauseStopping, to, "the primary's Pod is being stopped")
		p.event(api.EventSwitchoverStarted, "the primary moves from %s to %s, because its Pod is being stopped", i.Name, to)
		p.moves(p.st.PrimaryTransition)
	}
	return true
}

// drains tells that the role is moved away before a primary's Pod ends.
func (p *pass) drains() bool {
	return p.c.Spec.EnableSwitchoverOnDrain == nil || *p.c.Spec.EnableSwitchoverOnDrain
}

// primaryCordoned moves the role away from a healthy primary whose node is about to be emptied.
func (p *pass) primaryCordoned() bool {
	i := p.primary()
	if i == nil || i.Pod == nil || !i.Pod.Cordoned || !p.drains() || p.pending() != nil {
		return false
	}
	to := p.bestReplica(func(i *Instance) bool { return !i.Pod.Cordoned && i.Pod.Ready })
	if to == "" {
		p.note = "the primary's node is cordoned, and no replica on another node can take over"
		return false
	}
	if why, left := p.failbackPaused(to); why != "" {
		p.note = fmt.Sprintf("the primary's node is cordoned; the role moves to %s at %s", to, why)
		p.recheck(left)
		return false
	}
	p.start(api.TransitionSwitchover, api.CauseCordoned, to, "the primary's node is cordoned")
	p.event(api.EventSwitchoverStarted, "the primary moves from %s to %s, because its node is cordoned", i.Name, to)
	p.moves(p.st.PrimaryTransition)
	return true
}

// bestReplica is the fit instance that is least behind, of those that may be; empty when there is none. One on a
// cordoned node comes after all others.
func (p *pass) bestReplica(may func(*Instance) bool) string {
	var best *Instance
	var least uint64
	for n := range p.s.Instances {
		i := &p.s.Instances[n]
		if i.Name == p.st.CurrentPrimary || p.unfit(i.Name) != "" || may != nil && !may(i) {
			continue
		}
		behind := p.lastSeen().Minus(i.Report.MySQL.Executed).Count()
		if best == nil || p.rather(i, behind, best, least) {
			best, least = i, behind
		}
	}
	if best == nil {
		return ""
	}
	return best.Name
}

// rather tells that an instance is a better target of a switchover than another.
func (p *pass) rather(i *Instance, behind uint64, than *Instance, least uint64) bool {
	switch {
	case i.Pod.Cordoned != than.Pod.Cordoned:
		return than.Pod.Cordoned
	case behind != least:
		return behind < least
	}
	return p.preference(i.Name) < p.preference(than.Name)
}

// lastSeen is what the primary was last seen to have executed.
func (p *pass) lastSeen() gtid.Set {
	if i := p.primary(); i.running() {
		return i.Report.MySQL.Executed
	}
	return p.lastRecorded(p.st.CurrentPrimary)
}
