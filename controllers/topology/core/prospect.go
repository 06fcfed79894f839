package core

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cnmsql.co/operator/instance/gtid"
)

// Prospect is one instance with what speaks for and against it.
type Prospect struct {
	Instance string `json:"instance"`
	// Role is primary or replica, or leaving for one that is no member any more.
	Role string `json:"role"`
	// Answers is how it stands with its manager; Age is how old its last report is.
	Answers string           `json:"answers"`
	Age     *metav1.Duration `json:"age,omitempty"`
	// The counts are of transactions. Executed, Received and Held (both together) are its own; Unapplied is what it
	// received and has not executed, Missing what the primary is known to have executed and it does not hold.
	// They are absent when its server was not read.
	Executed  *uint64 `json:"executed,omitempty"`
	Received  *uint64 `json:"received,omitempty"`
	Held      *uint64 `json:"held,omitempty"`
	Unapplied *uint64 `json:"unapplied,omitempty"`
	Missing   *uint64 `json:"missing,omitempty"`
	// Errant is what it holds and the primary does not, ErrantCount how many.
	Errant      string `json:"errant,omitempty"`
	ErrantCount uint64 `json:"errantCount,omitempty"`
	// Source is whom it replicates from; LagSeconds is the server's own figure.
	Source     string `json:"source,omitempty"`
	LagSeconds *int64 `json:"lagSeconds,omitempty"`
	// HeartbeatAge is how long ago it heard its source; absent when never.
	HeartbeatAge *metav1.Duration `json:"heartbeatAge,omitempty"`
	// Preference is its place in failoverPolicy.preferredPrimary, from 1; 0 when it is not named.
	Preference int `json:"preference,omitempty"`
	// Switchover is whether it could become the primary by a switchover now: "fit", or why not.
	Switchover string `json:"switchover"`
}

// prospect is what there is to say of one instance, now.
func (p *pass) prospect(i *Instance) Prospect {
	out := Prospect{Instance: i.Name, Role: "replica", Answers: answers(i), Switchover: "fit"}
	if n := slices.Index(p.preferred(), i.Name); n >= 0 {
		out.Preference = n + 1
	}
	switch {
	case i.Name == p.st.CurrentPrimary:
		out.Role, out.Switchover = "primary", "is the primary"
	case !p.isMember(i.Name):
		out.Role = "leaving"
	}
	switch why := p.unfit(i.Name); {
	case out.Role == "primary" || why == "":
	case i.Pod != nil && i.Report == nil && !i.Asked:
		out.Switchover = "not known"
	default:
		out.Switchover = why
	}
	if i.Report != nil {
		out.Age = &metav1.Duration{Duration: i.Age.Round(time.Millisecond)}
	}
	if mark := p.mark(i.Name); mark != nil {
		out.Errant, out.ErrantCount = mark.GTIDSet, uint64(max(mark.Count, 0)) // #nosec G115 -- not negative
	}
	if !i.running() {
		return out
	}
	m := i.Report.MySQL
	count := func(s gtid.Set) *uint64 { return new(s.Count()) }
	out.Executed, out.Held, out.Unapplied = count(m.Executed), count(m.Held()), count(m.Unapplied())
	if out.Role != "primary" {
		out.Missing = count(p.lastSeen().Minus(m.Held()))
	}
	if r := m.Replication; r != nil {
		out.Received, out.Source, out.LagSeconds = count(r.Received), i.source(), r.SecondsBehind
		if r.HeartbeatAgeMillis >= 0 {
			out.HeartbeatAge = &metav1.Duration{Duration: time.Duration(r.HeartbeatAgeMillis)*time.Millisecond + i.Age.Round(time.Millisecond)}
		}
	}
	return out
}

// answers says how it stands with an instance's manager and server.
func answers(i *Instance) string {
	switch {
	case i.Pod == nil:
		return "has no Pod"
	case i.Report == nil && !i.Asked:
		return "was not asked"
	case i.Report == nil:
		return "does not answer"
	case i.Report.Provision != nil:
		return "has no data yet (" + i.Report.Provision.Step + ")"
	}
	return "server " + string(i.Report.Server.State)
}
