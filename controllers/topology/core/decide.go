package core

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Decide returns what is to be remembered and done.
func Decide(s Snapshot) Decision {
	p := begin(&s)
	if s.Cluster.DeletionTimestamp != nil {
		p.d.Rule = "the Cluster is being deleted"
		p.st.Phase, p.st.PhaseReason = api.PhaseDeleting, "its Pods are removed; volumes follow their reclaim policy"
		return p.d
	}
	p.judge()
	for _, r := range PrimaryRules {
		if r.speak(p) {
			p.d.Rule = r.Name
			break
		}
	}
	if p.d.Refresh {
		return Decision{Rule: p.d.Rule, Refresh: true}
	}
	p.members()
	p.routing()
	for _, a := range []*Action{p.record, p.clear} {
		if a != nil {
			p.d.Actions = append(p.d.Actions, *a)
		}
	}
	p.summarise()
	p.d.Brake = p.brake().left
	p.recheck(recordEvery)
	if s.Patience > 0 {
		p.recheck(s.Patience)
	}
	return p.d
}

// begin is a pass that has looked at nothing yet.
func begin(s *Snapshot) *pass {
	p := &pass{s: s, c: s.Cluster}
	s.Cluster.Status.DeepCopyInto(&p.d.Status)
	p.st = &p.d.Status
	return p
}

// judge finds out what holds before any rule about the primary is asked.
func (p *pass) judge() {
	p.correctTimes()
	p.history()
	p.settle()
	p.watchRuns()
	p.stretch()
	p.judgeReplicas()
}

// Rule is one situation in which the question "who is the primary?" can be.
type Rule struct {
	// Name is the situation.
	Name string
	// Does is what follows, for the documentation.
	Does  string
	speak func(*pass) bool
}

// PrimaryRules is tried in order; the first that applies speaks. The order is the priority.
var PrimaryRules = []Rule{
	{"the status was lost", "No empty primary is made where volumes or a Lease tell that there was one. If all volumes are this Cluster's own, every instance answers, and all hold the same or the Lease's last holder holds all: that one is promoted. Else Blocked.", (*pass).statusLost},
	{"no primary yet", "The first instance is named and a bootstrap transition to it is written.", (*pass).noPrimaryYet},
	{"the first primary is being made", "Waits until the first instance has initialised its server and claimed the role.", (*pass).bootstrapRunning},
	{"a loss was accepted", "A person named an instance and a loss (mysql.cnmsql.co/accept-loss). Once the primary has failed and its lease is free, and nobody who answers shows that more would be lost: writes a failover transition to that instance, and marks who holds more as diverged. Removes the annotation, followed or refused.", (*pass).lossAccepted},
	{"a switchover is running", "Waits for the handoff and the claim; ends it when it is cancelled, when the target cannot finish, or at its deadline.", (*pass).switchoverRunning},
	{"a failover is running", "Waits for the claim; elects again when the chosen instance cannot finish.", (*pass).failoverRunning},
	{"the primary has failed", "After failoverDelay, when failoverPolicy.minTimeBetweenFailovers does not hold it back (it does not hold back the failover of a fenced primary), and once its lease is free: reads everybody anew, elects, writes a failover transition. A primary that keeps its lease and does not serve has its Pod stopped, unless it is fenced.", (*pass).primaryFailed},
	{"the primary cannot be reached", "Nothing: the fault may lie between the operator and the primary. Says so. One that replicas hear and clients cannot reach is asked to hand over.", (*pass).primaryUnreachable},
	{"the primary is fenced", "Waits until its manager has made the server read-only, given the lease back and begun to stop the server, for 15 s and failoverDelay at most; then the primary has failed.", (*pass).primaryFenced},
	{"the primary is opening", "Waits until the instance that claimed the role is writable; a switchover that is asked for waits with it.", (*pass).primaryOpening},
	{"the primary's Pod is being stopped", "Moves the role to the best replica before the Pod ends, unless enableSwitchoverOnDrain is false.", (*pass).primaryGoing},
	{"a switchover is asked for", "Validates; refuses and resets targetPrimary, or writes a switchover transition.", (*pass).switchoverAsked},
	{"the primary has no room to write", "Says so. If that lasts for 15 s and failoverDelay, and a replica could take over, the primary has failed: the commits of a server on a full volume wait, and it cannot hand over.", (*pass).primaryStuck},
	{"the primary's node is cordoned", "Moves the role to the best replica on a node that is not, unless enableSwitchoverOnDrain is false. After a move that had to be ended it waits as for a preferred instance.", (*pass).primaryCordoned},
	{"another instance is preferred", "Moves the role, in a switchover, to the first of failoverPolicy.preferredPrimary that is fit. Not while an instance is being cloned, and after one that had to be ended not for ten minutes, then twice as long each time.", (*pass).failBack},
	{"the primary is healthy", "Nothing.", (*pass).primaryHealthy},
}

// pass is one run of Decide.
type pass struct {
	s  *Snapshot
	c  *api.Cluster
	st *api.ClusterStatus
	d  Decision

	// say is what the rule about the primary wants to be known.
	say outcome
	// last is the last automatic promotion; nil when there was none. unreadable is why it is not known.
	last       *FailoverRecord
	unreadable string
	// record writes its second copy.
	record *Action
	// clear removes an annotation that was answered.
	clear *Action
	// note is what there is to say of a healthy primary.
	note string
	// disrupted tells that this pass already takes something away; at most one such action is done.
	disrupted bool
}

// outcome is what a rule about the primary says of the whole.
type outcome struct {
	phase   api.Phase
	reason  string
	message string
	blocked bool
	// making tells that instances are being made, in a Cluster that works already.
	making bool
	// keep leaves phase and conditions as they are: nothing is known yet.
	keep bool
}

func (p *pass) outcome(phase api.Phase, reason, format string, args ...any) {
	p.say = outcome{phase: phase, reason: reason, message: fmt.Sprintf(format, args...)}
}

func (p *pass) block(reason, format string, args ...any) {
	p.outcome(api.PhaseBlocked, reason, format, args...)
	p.say.blocked = true
}

func (p *pass) event(reason, format string, args ...any) {
	p.d.Events = append(p.d.Events, Event{Reason: reason, Message: fmt.Sprintf(format, args...)})
}

func (p *pass) warn(reason, format string, args ...any) {
	p.d.Events = append(p.d.Events, Event{Warning: true, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// done is the event of an action that is done.
func done(reason, format string, args ...any) *Event {
	return &Event{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

func (p *pass) act(a Action) {
	p.d.Actions = append(p.d.Actions, a)
	p.disrupted = p.disrupted || a.Kind == DeletePod
}

// recheck asks to look again after d at the latest.
func (p *pass) recheck(d time.Duration) {
	d = max(d, 50*time.Millisecond)
	if p.d.Recheck == 0 || d < p.d.Recheck {
		p.d.Recheck = d
	}
}

func (p *pass) now() metav1.MicroTime { return metav1.NewMicroTime(p.s.Now) }

// pending returns the transition that is still to be carried out.
func (p *pass) pending() *api.PrimaryTransition { return pending(p.st) }

func pending(st *api.ClusterStatus) *api.PrimaryTransition {
	t := st.PrimaryTransition
	if t == nil || t.Generation != st.CurrentPrimaryGeneration+1 {
		return nil
	}
	return t
}

func (p *pass) primary() *Instance { return p.s.instance(p.st.CurrentPrimary) }

// start writes a transition: from here on the instances act.
func (p *pass) start(kind api.TransitionKind, cause api.TransitionCause, to, why string) {
	t := &api.PrimaryTransition{
		Attempt: p.s.NewAttempt, Kind: kind, From: p.st.CurrentPrimary, To: to,
		Generation: p.st.CurrentPrimaryGeneration + 1, StartedAt: p.now(), Cause: cause, Reason: why,
	}
	if kind == api.TransitionSwitchover {
		deadline := metav1.NewMicroTime(p.s.Now.Add(p.maxSwitchoverDelay()))
		t.Deadline = &deadline
	}
	now := p.now()
	p.st.PrimaryTransition, p.st.TargetPrimary, p.st.TargetPrimaryTimestamp = t, to, &now
}

// settle closes the books on a transition whose target has claimed the role.
func (p *pass) settle() {
	t := p.st.PrimaryTransition
	if t == nil || p.pending() != nil {
		return
	}
	p.st.PrimaryTransition = nil
	if p.st.CurrentPrimary != t.To || p.st.CurrentPrimaryGeneration != t.Generation {
		return
	}
	p.st.Failback = nil
	// The claim was written to the Cluster as it then was, with all instances that had been made.
	p.st.PrimaryKnows = slices.Clone(p.st.InstanceNames)
	from := t.StartedAt.Time
	if since := p.st.PrimaryFailingSince; since != nil && t.Kind == api.TransitionFailover {
		from = since.Time
	}
	p.d.Promoted = &Promotion{Cause: t.Cause, Took: max(p.s.Now.Sub(from), 0)}
	p.endStretch(p.s.Now)
	if counts(t) {
		p.last, p.unreadable = &FailoverRecord{At: p.s.Now.UTC().Truncate(time.Second), Target: t.To, Generation: t.Generation}, ""
		p.keepHistory()
	}
	if p.st.PrimaryFailingSince != nil {
		// That was of the former primary; this one has only just claimed the role.
		now := p.now()
		p.st.PrimaryFailingSince = &now
	}
	p.st.PrimaryOpening = nil
	if p.st.TargetPrimary == t.From {
		p.st.TargetPrimary = t.To
	}
	p.event(api.EventPromoted, "%s is the primary (%s, generation %d)", t.To, t.Kind, t.Generation)
}

func (p *pass) isMember(name string) bool { return slices.Contains(p.st.InstanceNames, name) }

// correctTimes makes the times count from now that lie in the future, where another operator wrote them on a machine
// whose date is ahead: what waits for them would wait until this one's has come there.
func (p *pass) correctTimes() {
	now, t := p.now(), p.st.PrimaryTransition
	if f := p.st.PrimaryFailingSince; f != nil && f.After(p.s.Now) {
		p.st.PrimaryFailingSince = &now
	}
	if o := p.st.PrimaryOpening; o != nil && o.Since.After(p.s.Now) {
		o.Since = now
	}
	if t == nil {
		return
	}
	if t.StartedAt.After(p.s.Now) {
		t.StartedAt = now
	}
	if latest := metav1.NewMicroTime(p.s.Now.Add(p.maxSwitchoverDelay())); t.Deadline != nil && t.Deadline.After(latest.Time) {
		t.Deadline = &latest
	}
}

func (p *pass) maxSwitchoverDelay() time.Duration {
	return time.Duration(p.c.Spec.MaxSwitchoverDelay) * time.Second
}
