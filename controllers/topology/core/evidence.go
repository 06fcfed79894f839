package core

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/protocol"
)

// state is what is known of the primary.
type state int

const (
	// healthy: it reports itself writable in this generation.
	healthy state = iota
	// stuck: it reports itself writable, and has no room to write.
	stuck
	// opening: its server runs, and it is not writable (yet).
	opening
	// unreachable: it does not answer the operator, which proves nothing yet.
	unreachable
	// ending: it is fenced, and its server is about to stop.
	ending
	// failing: there is evidence that it cannot serve.
	failing
)

// verdict is the state with the evidence for it.
type verdict struct {
	state state
	why   string
	// again is when the verdict may change without an event; zero for never.
	again time.Duration
}

// heartbeatsMissed is how long a replica may hear nothing from its source before the source does not count
// as alive: three of the replication heartbeats that a source sends when it has nothing else.
const heartbeatsMissed = 3 * flavor.HeartbeatPeriod

// evidence judges the primary: first what its own manager or the API server reports, then signs of life,
// then silence.
func (p *pass) evidence(i *Instance) verdict {
	switch {
	case i == nil || i.Pod == nil:
		return verdict{failing, "its Pod is gone", 0}
	case i.Pod.Ended != "":
		return verdict{failing, "its Pod is " + i.Pod.Ended, 0}
	case i.Report != nil:
		return p.reported(i)
	case !i.Asked && !i.Pod.Running:
		return verdict{failing, "its Pod does not run", 0}
	case !i.Asked && !i.going():
		return verdict{unreachable, "its manager was not asked yet", time.Second}
	}
	return p.silence(i)
}

// reported judges by what the primary's manager says.
func (p *pass) reported(i *Instance) verdict {
	r := i.Report
	fenced := p.fenced(i.Name)
	switch {
	case !fenced && i.writable(p.st.CurrentPrimaryGeneration):
		return p.judgeRoom(i)
	case r.Provision != nil:
		return verdict{failing, "its data is gone (" + r.Provision.Step + ")", 0}
	case fenced:
		return p.reportedFenced(r)
	case r.Server.State == protocol.ServerDown:
		return verdict{failing, joinWhy("its server is down", r.Server.LastExit), 0}
	case r.MySQL == nil && r.Server.State != protocol.ServerRunning:
		return verdict{failing, "its server is " + string(r.Server.State), 0}
	case r.Role.ResumeRefused != "":
		return verdict{failing, r.Role.ResumeRefused, 0}
	case i.going():
		return verdict{failing, "its Pod is being stopped and it has stepped down", 0}
	}
	left := p.patience()
	if left <= 0 {
		return verdict{failing, joinWhy(fmt.Sprintf("it has not been writable for %d s", int(p.bound().Seconds())), r.Role.Doing), 0}
	}
	return verdict{opening, r.Role.Doing, left}
}

// reportedFenced judges a fenced primary by its server. Its manager ends that, and gives the lease back before.
func (p *pass) reportedFenced(r *protocol.Report) verdict {
	runs := r.Server.State == protocol.ServerRunning || r.Server.State == protocol.ServerStarting
	left := p.patience()
	switch {
	case r.Server.State == protocol.ServerFenced:
		return verdict{failing, "it is fenced, and its server has stopped", 0}
	case !runs:
		return verdict{failing, "it is fenced, and its server is " + string(r.Server.State), 0}
	case left <= 0:
		return verdict{failing, fmt.Sprintf("it is fenced, and its server has not stopped for %d s", int(p.bound().Seconds())), 0}
	}
	return verdict{ending, "it is fenced, and its server is about to stop", left}
}

// judgeRoom judges a writable primary by its volumes. One that is full for longer than a primary may not serve has
// failed, since its commits wait and it cannot hand over; but only where somebody would take over: it still serves reads.
func (p *pass) judgeRoom(i *Instance) verdict {
	why := i.noRoom()
	if why == "" {
		return verdict{state: healthy}
	}
	if left := p.patience(); left > 0 {
		return verdict{stuck, why, left}
	}
	if h := p.brake(); h.back() {
		return verdict{stuck, why + ", and a failover is " + h.String(), max(h.left, time.Second)}
	}
	// By what is known now. The election that counts is held on fresh facts.
	if e := begin(p.s).elect(); e.winner == "" {
		return verdict{stuck, why + ", and nobody can take over: " + e.verdict, 0}
	}
	return verdict{failing, why, 0}
}

// primaryStuck says so, and lets its time run.
func (p *pass) primaryStuck() bool {
	v := p.evidence(p.primary())
	if v.state != stuck {
		return false
	}
	if p.failingSinceNow() {
		p.warn(api.EventVolumeNotWritable, "the primary %s cannot write: %s", p.st.CurrentPrimary, v.why)
	}
	p.outcome(api.PhaseDegraded, api.ReasonVolumeNotWritable, "the primary %s cannot write: %s; make room on a full volume, or make it larger; where one is read-only, its disk has failed", p.st.CurrentPrimary, v.why)
	if v.again > 0 {
		p.recheck(v.again)
	}
	return true
}

// bound is how long a primary may live and not serve.
func (p *pass) bound() time.Duration {
	return api.PrimaryLeaseTTL + time.Duration(p.c.Spec.FailoverDelay)*time.Second
}

// patience is what is left of that.
func (p *pass) patience() time.Duration {
	if p.st.PrimaryFailingSince == nil {
		return p.bound()
	}
	from := p.st.PrimaryFailingSince.Time
	if o := p.st.PrimaryOpening; o != nil && o.Since.After(from) {
		from = o.Since.Time
	}
	return p.bound() - max(p.s.Now.Sub(from), 0)
}

// watchRuns notes when the server of a primary that does not serve was started anew. It then has its own time to open:
// without that a primary which took long to come back would be stopped for being late, again and again.
func (p *pass) watchRuns() {
	i := p.primary()
	run := ""
	switch {
	case p.st.CurrentPrimary == "" || i.writable(p.st.CurrentPrimaryGeneration) && i.noRoom() == "":
		p.st.PrimaryOpening = nil
		return
	case p.st.PrimaryFailingSince == nil:
		return
	case i == nil || i.Pod == nil || i.Pod.Ended != "":
	case i.Report == nil:
		// Silence says nothing of the server.
		return
	case i.Report.Server.State == protocol.ServerRunning:
		run = i.Pod.UID + " " + i.Report.Boot + " " + i.Report.Server.Since.UTC().Format(time.RFC3339Nano)
	}
	switch o := p.st.PrimaryOpening; {
	case o == nil:
		p.st.PrimaryOpening = &api.PrimaryOpening{Server: run, Since: *p.st.PrimaryFailingSince}
	case o.Server != run:
		p.st.PrimaryOpening = &api.PrimaryOpening{Server: run, Since: p.now()}
	}
}

// failingSinceNow starts that time, unless it runs already.
func (p *pass) failingSinceNow() (first bool) {
	if p.st.PrimaryFailingSince != nil {
		return false
	}
	now := p.now()
	p.st.PrimaryFailingSince = &now
	p.watchRuns()
	return true
}

// silence judges a primary that does not answer.
func (p *pass) silence(i *Instance) verdict {
	if name := p.heardBy(i.Name); name != "" {
		return verdict{unreachable, fmt.Sprintf("the operator cannot reach it, but %s hears it", name), time.Second}
	}
	if !i.Pod.Ready {
		return verdict{failing, "its manager does not answer, its Pod is not Ready, and no replica hears it", 0}
	}
	if p.s.Lease.Expired() || p.s.Lease.Known && p.s.Lease.Holder == "" {
		return verdict{failing, "its manager does not answer, its lease has expired, and no replica hears it", 0}
	}
	return verdict{unreachable, "its manager does not answer, but its Pod is Ready", p.s.Lease.Remaining()}
}

// primaryFenced waits until the server of a primary that a person fenced has stopped. Nobody is asked to hand over: the
// fence itself does that.
func (p *pass) primaryFenced() bool {
	v := p.evidence(p.primary())
	if p.pending() != nil || v.state != ending {
		return false
	}
	p.failingSinceNow()
	p.outcome(api.PhaseFailingOver, api.ReasonFenced, "the primary %s: %s", p.st.CurrentPrimary, v.why)
	p.recheck(v.again)
	return true
}

// heardBy names a replica that received something from the primary within the last heartbeats.
func (p *pass) heardBy(primary string) string {
	for n := range p.s.Instances {
		i := &p.s.Instances[n]
		if i.source() != primary || !i.Report.MySQL.Replication.Connected {
			continue
		}
		age := i.Report.MySQL.Replication.HeartbeatAgeMillis
		if age >= 0 && time.Duration(age)*time.Millisecond+i.Age < heartbeatsMissed {
			return i.Name
		}
	}
	return ""
}

func joinWhy(what, detail string) string {
	if detail == "" {
		return what
	}
	return what + ": " + detail
}

// primaryUnreachable says so, and does nothing.
func (p *pass) primaryUnreachable() bool {
	v := p.evidence(p.primary())
	if v.state != unreachable {
		return false
	}
	i := p.primary()
	p.outcome(api.PhaseDegraded, api.ReasonPrimaryUnreachable, "the primary %s: %s", p.st.CurrentPrimary, v.why)
	p.recheck(v.again)
	// An operator that has just started says nothing before it has asked.
	p.say.keep = !i.Asked && p.st.Phase != "" && p.s.NotReadyYet == ""
	if i.Asked && !p.said(api.ReasonPrimaryUnreachable) {
		p.warn(api.EventPrimaryUnreachable, "the operator gets no answer from the primary %s; nothing is done while it may be alive", i.Name)
	}
	if i.Asked && !i.Pod.Ready {
		p.relieve(i)
	}
	return true
}

// relieve moves the role away from a primary that lives, as its replicas hear, and that no client reaches,
// since its Pod is not Ready. It sees the transition and hands over.
func (p *pass) relieve(i *Instance) {
	p.failingSinceNow()
	if p.patience() > 0 {
		return
	}
	if p.s.Lease.Free() {
		// It can hand over no more. Whether its server takes writes all the same, nobody knows.
		p.say.message += "; its lease is not renewed, so it cannot be asked to hand over: if it does not come back, delete its Pod"
		return
	}
	if h := p.brake(); h.back() {
		p.say.message += "; moving it away is " + h.String()
		p.recheck(max(h.left, time.Second))
		return
	}
	if to := p.bestReplica(nil); to != "" {
		p.start(api.TransitionSwitchover, api.CauseUnreachable, to, "no client reaches the primary")
		p.warn(api.EventSwitchoverStarted, "the primary moves from %s to %s, because no client reaches it", i.Name, to)
		p.moves(p.st.PrimaryTransition)
	}
}

// said tells that the status already gives this reason, so that an event about it would be a repetition.
func (p *pass) said(reason string) bool {
	c := meta.FindStatusCondition(p.c.Status.Conditions, api.ConditionReady)
	return c != nil && c.Reason == reason
}

// openingQuietly is for how long an opening is no more than that: each of its steps in the status would be one
// more write, in the very moment in which a write of the status stands between the clients and their primary.
const openingQuietly = 3 * time.Second

// primaryOpening waits for an instance that claimed the role, or resumes it.
func (p *pass) primaryOpening() bool {
	v := p.evidence(p.primary())
	if v.state != opening {
		return false
	}
	p.failingSinceNow()
	phase := api.PhaseFailingOver
	switch {
	case p.st.EstablishedAt == nil:
		phase = api.PhaseProvisioning
	case p.c.Status.Phase == api.PhaseSwitchover:
		phase = api.PhaseSwitchover
	}
	p.outcome(phase, api.ReasonNoPrimary, "%s is about to be writable", p.st.CurrentPrimary)
	if left := openingQuietly - (p.bound() - p.patience()); left > 0 {
		p.recheck(left)
	} else {
		p.say.message += ": " + v.why
	}
	p.recheck(v.again)
	return true
}

// failureReasons are what the status says while a failed primary is not yet replaced.
var failureReasons = []string{api.ReasonPrimaryFailed, api.ReasonLeaseHeld, api.ReasonNoSafeCandidate, api.ReasonWitnessesMissing, api.ReasonFailoverBraked, api.ReasonHistoryUnreadable}

// primaryHealthy is the steady state.
func (p *pass) primaryHealthy() bool {
	if slices.ContainsFunc(failureReasons, p.said) {
		p.event(api.EventPrimaryRecovered, "the primary %s is writable", p.st.CurrentPrimary)
	}
	p.outcome(api.PhaseReady, api.ReasonHealthy, "%s", p.note)
	return true
}
