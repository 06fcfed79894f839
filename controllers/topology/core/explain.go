package core

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Explanation is why a snapshot leads to its decision, and where it would lead without the primary.
type Explanation struct {
	Cluster string    `json:"cluster"`
	At      time.Time `json:"at"`
	// Primary is the current primary; empty while there is none.
	Primary    string `json:"primary,omitempty"`
	Generation int64  `json:"generation,omitempty"`
	// Evidence is what is known of it, in a sentence.
	Evidence string `json:"evidence,omitempty"`
	Lease    string `json:"lease"`
	// Decision is what Decide makes of the snapshot.
	Decision Outcome `json:"decision"`
	// Instances are what may be chosen from, by ordinal.
	Instances []Prospect `json:"instances"`
	// WithoutPrimary is what would follow if the primary died now, or if a failed one did not come back, in the order
	// in which it would come; empty while there is no primary, or when it is what is decided now.
	WithoutPrimary []Step `json:"withoutPrimary,omitempty"`
	// NotAsked are the other instances that were not asked, so that nobody can tell what would follow.
	NotAsked []string `json:"notAsked,omitempty"`
}

// Outcome is a decision in words.
type Outcome struct {
	// Number is the rule's place among PrimaryRules, from 1; 0 when none was asked.
	Number int    `json:"number"`
	Rule   string `json:"rule"`
	// Does is what this rule does in general.
	Does   string    `json:"does,omitempty"`
	Phase  api.Phase `json:"phase,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Message is the reason in a sentence; empty when nothing is wrong.
	Message string `json:"message,omitempty"`
	// Blocked tells that a failover is held back.
	Blocked bool `json:"blocked,omitempty"`
	// WaysOn is what lets it go on when nobody is promoted and something is waited for.
	WaysOn string `json:"waysOn,omitempty"`
	// Winner is who is being promoted, or resumes; empty for nobody. Election is who was considered by this decision
	// and why not chosen; nil when there was no election.
	Winner   string        `json:"winner,omitempty"`
	Election *api.Election `json:"election,omitempty"`
	// Writes are the fields of the status that change, Actions what is done, Events what is told.
	Writes  []Change `json:"writes,omitempty"`
	Actions []string `json:"actions,omitempty"`
	Events  []string `json:"events,omitempty"`
	// Recheck is when the operator looks again although nothing happened.
	Recheck *metav1.Duration `json:"recheck,omitempty"`
}

// Step is one decision of those that would follow.
type Step struct {
	// Assuming is what is taken for granted.
	Assuming string  `json:"assuming"`
	Outcome  Outcome `json:"outcome"`
}

// Explain runs Decide on the snapshot, and again on what would come of it without the primary. It changes nothing.
func Explain(s Snapshot) Explanation {
	p := begin(&s)
	p.judge()
	st := p.st
	e := Explanation{
		Cluster: s.Cluster.Namespace + "/" + s.Cluster.Name, At: s.Now,
		Primary: st.CurrentPrimary, Generation: st.CurrentPrimaryGeneration, Lease: s.Lease.String(),
		Decision: outcomeOf(&s, Decide(s)),
	}
	for n := range s.Instances {
		e.Instances = append(e.Instances, p.prospect(&s.Instances[n]))
	}
	if st.CurrentPrimary == "" || s.Cluster.DeletionTimestamp != nil {
		return e
	}
	v := p.evidence(p.primary())
	e.Evidence = joinWhy(v.state.String(), v.why)
	e.NotAsked = p.names(func(i *Instance) bool {
		return i.Name != st.CurrentPrimary && i.Pod != nil && i.Report == nil && !i.Asked
	})
	if len(e.NotAsked) > 0 {
		return e
	}
	e.WithoutPrimary = follow(p.withoutPrimary(v))
	if e.WithoutPrimary[0].Outcome.same(e.Decision) {
		e.WithoutPrimary = e.WithoutPrimary[1:]
	}
	return e
}

// follow is what comes of a snapshot, and of waiting until its brake lets go.
func follow(s Snapshot, assuming string) []Step {
	d := Decide(s)
	steps := []Step{{assuming, outcomeOf(&s, d)}}
	if steps[0].Outcome.Reason != api.ReasonFailoverBraked || d.Brake <= 0 {
		return steps
	}
	s.pass(d.Brake)
	s.Cluster = s.Cluster.DeepCopy()
	s.Cluster.Status = d.Status
	assuming = fmt.Sprintf("the primary is not back when the brake lets go, at %s", ceil(s.Now).UTC().Format(time.RFC3339))
	return append(steps, Step{assuming, outcomeOf(&s, Decide(s))})
}

// pass lets time go by in which nothing happens and nobody stamps.
func (s *Snapshot) pass(d time.Duration) {
	s.Now = s.Now.Add(d)
	s.Instances = slices.Clone(s.Instances)
	for n := range s.Instances {
		s.Instances[n] = s.Instances[n].later(d)
	}
}

// withoutPrimary is the snapshot in which the primary is dead, its lease has expired, failoverDelay is over, and
// everybody was asked anew. What is known of a primary that has failed stays as it is.
func (p *pass) withoutPrimary(v verdict) (s Snapshot, assuming string) {
	s = *p.s
	s.Fresh, s.Cluster, s.Instances = true, s.Cluster.DeepCopy(), slices.Clone(s.Instances)
	st := &s.Cluster.Status
	delay := time.Duration(s.Cluster.Spec.FailoverDelay) * time.Second
	if st.PrimaryFailingSince == nil {
		now := metav1.NewMicroTime(s.Now)
		st.PrimaryFailingSince = &now
	}
	s.pass(max(delay, api.PrimaryLeaseTTL))
	if api.HolderInstance(s.Lease.Holder) == st.CurrentPrimary {
		s.Lease.Unchanged = max(s.Lease.Unchanged, api.PrimaryLeaseTTL)
	}
	assuming = fmt.Sprintf("%s does not come back, its lease is free and failoverDelay (%d s) is over", st.CurrentPrimary, s.Cluster.Spec.FailoverDelay)
	if v.state == failing {
		return s, assuming
	}
	for n := range s.Instances {
		s.Instances[n] = s.Instances[n].withoutSource(st.CurrentPrimary)
	}
	if i := s.instance(st.CurrentPrimary); i != nil {
		i.Report, i.Age, i.Asked = nil, 0, true
		if i.Pod != nil {
			pod := *i.Pod
			pod.Ready, pod.Running = false, false
			i.Pod = &pod
		}
	}
	return s, fmt.Sprintf("%s died now, its lease has expired and failoverDelay (%d s) is over", st.CurrentPrimary, s.Cluster.Spec.FailoverDelay)
}

// withoutSource is the instance when its source is dead.
func (i Instance) withoutSource(source string) Instance {
	if i.source() != source {
		return i
	}
	report, mysql, replication := *i.Report, *i.Report.MySQL, *i.Report.MySQL.Replication
	replication.Connected, replication.HeartbeatAgeMillis, replication.SecondsBehind = false, -1, nil
	mysql.Replication, report.MySQL, i.Report = &replication, &mysql, &report
	return i
}

// waysOn are what lets a failover go on that is held back, by the condition's reason.
var waysOn = map[string]string{
	api.ReasonNoSafeCandidate:   "bring back the instances that the message names, and it goes on by itself; or raise failoverPolicy.maxTransactionsBehind or maxReplicationLag if that is what holds it back; or accept a loss with the annotation " + api.AnnotationAcceptLoss,
	api.ReasonWitnessesMissing:  "bring back (or unfence) as many of the instances as the message says, and it goes on by itself; or set mysql.semiSync.dataDurability to preferred, and lose what only they have; or accept a loss with the annotation " + api.AnnotationAcceptLoss,
	api.ReasonHistoryUnreadable: "correct or remove one copy of the last failover, as the message says",
	api.ReasonFailoverBraked:    "it goes on by itself at the time that the message gives; or bring the primary back, ask for a switchover, or lower failoverPolicy.minTimeBetweenFailovers",
	api.ReasonBootstrapRefused:  "bring back the instances or the volume that the message names, or delete the Cluster and make it again from a backup",
	api.ReasonLeaseHeld:         "it goes on by itself once the lease is given back or was watched for its whole length",
	api.ReasonVolumeNotWritable: "make room on the volume that the message names, or make it larger",
	api.ReasonFenced:            "it goes on by itself once the server has stopped; where there is no other instance, end the fence with kubectl cnmsql fence off",
	api.ReasonPrimaryFailed:     "bring the instance back: there is no other that could be promoted",
}

// String is the lease in a sentence.
func (l Lease) String() string {
	switch {
	case !l.Known:
		return "there is none, or it was not read"
	case l.Holder == "" && l.Handoff != nil:
		return "given back, with a handoff"
	case l.Holder == "":
		return "given back, without a handoff"
	case l.Expired():
		return fmt.Sprintf("expired: of %s, not renewed for %s or more", l.Holder, api.PrimaryLeaseTTL)
	}
	return fmt.Sprintf("held by %s, seen to change %s ago", l.Holder, l.Unchanged.Round(100*time.Millisecond))
}

// String is the state in a word.
func (s state) String() string {
	return [...]string{healthy: "healthy", stuck: "cannot write", opening: "opening", unreachable: "cannot be reached", ending: "fenced", failing: "has failed"}[s]
}
