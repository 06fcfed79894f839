package lease

import (
	"fmt"
	"slices"
	"time"
)

// Question is what a holder that cannot renew asks the other instances.
type Question struct {
	// Instance is the holder's name, Holder its identity on the Lease.
	Instance, Holder string
	// Generation is the latest that it knows of.
	Generation int64
}

// View is the Cluster as the instance that is asked last saw it.
type View struct {
	// Known is false until it has seen the Cluster once.
	Known bool
	// Generation is the present one and Primary the instance that has the role in it.
	Generation int64
	Primary    string
	// Target is to have the role in TargetGeneration; empty when no change of the primary is recorded.
	Target           string
	TargetGeneration int64
	// Instances are all that it knows of; Fenced are those of them that a person took out of service.
	Instances, Fenced []string
}

// Answer is what an instance says to a Question.
type Answer struct {
	// From is the instance.
	From string
	// Vouches tells that it has promised not to take the lease. Why is the reason for a refusal.
	Vouches bool
	Why     string
	// Newer tells that it knows another primary, in a later generation than the holder's.
	Newer bool
	// Instances are all that it knows of.
	Instances []string
}

// Answer is what this instance, named from, answers now, and the state with the promise that the answer makes.
// An instance that has seen nothing since it started vouches: it has to watch the lease for a whole TTL anyway.
func (s State) Answer(now time.Duration, from string, q Question, v View) (State, Answer) {
	a := Answer{From: from, Instances: v.Instances}
	a.Newer = v.Known && v.Generation > q.Generation && v.Primary != q.Instance
	a.Why = s.refusal(q, v)
	if a.Why != "" || a.Newer {
		return s, a
	}
	a.Vouches = true
	s.promised, s.promisedAt = q.Holder, now
	return s, a
}

func (s State) refusal(q Question, v View) string {
	pending := v.Target != "" && v.TargetGeneration > max(v.Generation, q.Generation)
	switch {
	case s.holding:
		return "it holds the primary lease itself"
	case s.known && s.record.Holder != "" && s.record.Holder != q.Holder:
		return "the primary lease is held by " + s.record.Holder
	case !v.Known:
		return ""
	case v.Generation > q.Generation && v.Primary != q.Instance:
		return fmt.Sprintf("%s is the primary in generation %d", v.Primary, v.Generation)
	case slices.Contains(v.Fenced, q.Instance):
		return q.Instance + " is fenced"
	case pending && v.Target != q.Instance:
		return "the role is going to " + v.Target
	case v.Generation == q.Generation && v.Primary != q.Instance && !pending:
		return fmt.Sprintf("the primary in generation %d is %q", v.Generation, v.Primary)
	}
	return ""
}

// Promised is whom this instance has promised not to take the lease from, and for how long still; empty and 0
// when nobody.
func (s State) Promised(now time.Duration) (holder string, left time.Duration) {
	if s.promised == "" {
		return "", 0
	}
	if left = s.promisedAt + s.times.Promise - now; left <= 0 {
		return "", 0
	}
	return s.promised, left
}

// Verdict is what a round of questions has come to.
type Verdict struct {
	// Ask are the instances that have not answered.
	Ask []string
	// Peers are all that had to be asked.
	Peers []string
	// Unanimous tells that all of them vouch. With nobody to ask it is true: nobody is there who could take
	// the lease.
	Unanimous bool
	// Newer tells that one knows another primary, in a later generation.
	Newer bool
	// Why is the reason when it is not unanimous.
	Why string
}

// Tally counts the answers that a holder, by name, has to a round. known is the instance list that the holder
// itself knows, and attached are the instances that its server sends its binary log to: one of these that is
// in nobody's list shows that the lists are too old to be relied on.
func Tally(self string, known, attached []string, answers []Answer) Verdict {
	listed := slices.Clone(known)
	for _, a := range answers {
		listed = append(listed, a.Instances...)
	}
	peers := append(slices.Clone(listed), attached...)
	slices.Sort(peers)
	peers = slices.DeleteFunc(slices.Compact(peers), func(n string) bool { return n == "" || n == self })
	v := Verdict{Peers: peers}
	if !slices.Contains(known, self) {
		v.Why = "the holder is not in its own list of instances"
	}
	for _, name := range peers {
		i := slices.IndexFunc(answers, func(a Answer) bool { return a.From == name })
		switch {
		case i < 0:
			v.Ask = append(v.Ask, name)
			v.Why = name + " has not answered"
		case answers[i].Newer:
			v.Newer, v.Why = true, name+": "+answers[i].Why
			return v
		case !answers[i].Vouches:
			v.Why = name + ": " + answers[i].Why
		case !slices.Contains(listed, name):
			v.Why = name + " replicates from here and is in nobody's list of instances"
		}
	}
	v.Unanimous = v.Why == ""
	return v
}

// Agreed tells that the round which was started then was unanimous.
func (s State) Agreed(started time.Duration) State {
	if !s.holding || s.fencedOf == s.Confirmed() {
		return s
	}
	s.vouched, s.asked, s.doubted = max(s.vouched, started), max(s.asked, started), false
	return s
}

// Doubted tells that the round which was started then was not unanimous.
func (s State) Doubted(started time.Duration) State {
	s.asked, s.doubted = max(s.asked, started), true
	return s
}

// Displaced tells that an instance knows another primary, in a later generation.
func (s State) Displaced() State {
	if s.holding {
		s.holding, s.lost = false, LostGeneration
	}
	return s
}
