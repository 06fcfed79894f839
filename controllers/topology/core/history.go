package core

import (
	"fmt"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// clockGrace is how far ahead of the operator's clock a record of a failover may be: clocks differ. One further
// ahead is dropped, since it would hold failovers back for as long as the clock was wrong.
const clockGrace = 5 * time.Minute

// FailoverRecord is the memory of the last automatic promotion. It is kept twice, in the status and in annotations
// of the Cluster, because the two are written by different ways, and may fail one without the other.
type FailoverRecord struct {
	// At has the precision of a second, in which both copies are written.
	At         time.Time
	Target     string
	Generation int64
}

// Annotations are the record as the Cluster carries it; every value is nil when there is none.
func (r *FailoverRecord) Annotations() map[string]*string {
	all := map[string]*string{api.AnnotationLastFailover: nil, api.AnnotationLastFailoverTarget: nil, api.AnnotationLastFailoverGeneration: nil}
	if r != nil {
		all[api.AnnotationLastFailover] = new(r.At.UTC().Format(time.RFC3339))
		all[api.AnnotationLastFailoverTarget] = &r.Target
		all[api.AnnotationLastFailoverGeneration] = new(strconv.FormatInt(r.Generation, 10))
	}
	return all
}

// beats tells that a record is of a later failover than another: a later generation, then a later instant.
func (r *FailoverRecord) beats(other *FailoverRecord) bool {
	switch {
	case r == nil || other == nil:
		return r != nil
	case r.Generation != other.Generation:
		return r.Generation > other.Generation
	}
	return r.At.After(other.At)
}

// memory is one copy of the record as it was read.
type memory struct {
	where  string
	record *FailoverRecord
	// unreadable is why it says nothing although something is there; dropped is why what it says does not count.
	unreadable, dropped string
}

// history reads both copies, each alone, and makes them one. A copy that cannot be read gives way to the other, and
// that is told; where neither of two can be read, nothing is changed and nothing is known.
func (p *pass) history() {
	status, annotations := p.statusMemory(), p.annotationMemory()
	if status.unreadable != "" && annotations.unreadable != "" {
		p.unreadable = fmt.Sprintf("%s %s; %s %s", status.where, status.unreadable, annotations.where, annotations.unreadable)
		return
	}
	for _, m := range []memory{status, annotations} {
		if why := m.unreadable + m.dropped; why != "" {
			p.warn(api.EventHistoryDropped, "the record of the last failover in %s is dropped: it %s", m.where, why)
		}
	}
	p.last = status.record
	if annotations.record.beats(status.record) {
		p.last = annotations.record
	}
	p.keepHistory()
}

// keepHistory makes both copies say the same.
func (p *pass) keepHistory() {
	if p.last == nil {
		p.st.LastFailoverTimestamp, p.st.LastFailoverTarget, p.st.LastFailoverGeneration = nil, "", 0
	} else if at := metav1.NewTime(p.last.At); !at.Equal(p.st.LastFailoverTimestamp) || p.last.Target != p.st.LastFailoverTarget || p.last.Generation != p.st.LastFailoverGeneration {
		p.st.LastFailoverTimestamp, p.st.LastFailoverTarget, p.st.LastFailoverGeneration = &at, p.last.Target, p.last.Generation
		p.st.LastFailoverSettled = nil
	}
	p.record = nil
	for key, want := range p.last.Annotations() {
		have, there := p.c.Annotations[key]
		if there != (want != nil) || there && have != *want {
			p.record = &Action{Kind: RecordFailover, Instance: p.c.Name, Record: p.last, Why: "the annotations are the second copy"}
		}
	}
}

// statusMemory reads the status's copy. One without a generation is of a time when none was kept.
func (p *pass) statusMemory() memory {
	m := memory{where: "the status"}
	at, target := p.st.LastFailoverTimestamp, p.st.LastFailoverTarget
	switch {
	case at == nil && target == "" && p.st.LastFailoverGeneration == 0:
		return m
	case at == nil || at.IsZero():
		m.unreadable = "has no lastFailoverTimestamp"
	case target == "":
		m.unreadable = "has no lastFailoverTarget"
	default:
		return p.remembered(m, FailoverRecord{At: at.Time, Target: target, Generation: p.st.LastFailoverGeneration})
	}
	return m
}

// annotationMemory reads the annotations' copy.
func (p *pass) annotationMemory() memory {
	m := memory{where: "the annotations"}
	at, hasAt := p.c.Annotations[api.AnnotationLastFailover]
	target, hasTarget := p.c.Annotations[api.AnnotationLastFailoverTarget]
	generation, hasGeneration := p.c.Annotations[api.AnnotationLastFailoverGeneration]
	if !hasAt && !hasTarget && !hasGeneration {
		return m
	}
	when, errAt := time.Parse(time.RFC3339, at)
	number, errGeneration := strconv.ParseInt(generation, 10, 64)
	switch {
	case !hasAt:
		m.unreadable = "have no " + api.AnnotationLastFailover
	case !hasTarget:
		m.unreadable = "have no " + api.AnnotationLastFailoverTarget
	case !hasGeneration:
		m.unreadable = "have no " + api.AnnotationLastFailoverGeneration
	case errAt != nil:
		m.unreadable = fmt.Sprintf("give no time in %s: %q", api.AnnotationLastFailover, at)
	case errGeneration != nil:
		m.unreadable = fmt.Sprintf("give no number in %s: %q", api.AnnotationLastFailoverGeneration, generation)
	default:
		return p.remembered(m, FailoverRecord{At: when, Target: target, Generation: number})
	}
	return m
}

// remembered judges a copy that is whole.
func (p *pass) remembered(m memory, r FailoverRecord) memory {
	r.At = r.At.UTC().Truncate(time.Second)
	if _, ok := p.c.InstanceOrdinal(r.Target); !ok {
		m.unreadable = fmt.Sprintf("names no instance of this Cluster: %q", r.Target)
		return m
	}
	if r.Generation < 0 {
		m.unreadable = fmt.Sprintf("gives no generation: %d", r.Generation)
		return m
	}
	if ahead := r.At.Sub(p.s.Now); ahead > clockGrace {
		m.dropped = fmt.Sprintf("is %s in the future (%s)", ahead.Round(time.Second), r.At.Format(time.RFC3339))
		return m
	}
	m.record = &r
	return m
}
