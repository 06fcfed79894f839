package core

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// held is what the brake says of an automatic change of primary.
type held struct {
	// left is how long it is still held back; 0 when it is not.
	left time.Duration
	// until is when that ends.
	until time.Time
	// problem is why the last failover cannot be known, so that everything is held back; empty when it can.
	problem string
}

func (h held) back() bool { return h.left > 0 || h.problem != "" }

// brake judges by the last failover that was completed. Its time runs from when that had settled; one whose primary
// was never seen healthy has settled with the promotion, so that it can be replaced, too.
func (p *pass) brake() held {
	least, window := p.braking()
	switch {
	case least == 0:
		return held{}
	case p.unreadable != "":
		return held{problem: p.unreadable}
	case p.last == nil:
		return held{}
	}
	from := p.last.At
	if now := p.s.Now; from.After(now) {
		// Nothing of it has passed, and no more than the whole is left.
		return held{left: least, until: from.Add(least)}
	}
	if window > 0 {
		from = p.settled(window)
	}
	until := from.Add(least)
	return held{left: max(until.Sub(p.s.Now), 0), until: until}
}

// braking are minTimeBetweenFailovers and primaryStabilityWindow.
func (p *pass) braking() (least, window time.Duration) {
	f := p.c.Spec.FailoverPolicy
	if f == nil || f.MinTimeBetweenFailovers == nil {
		return 0, 0
	}
	if f.PrimaryStabilityWindow != nil {
		window = f.PrimaryStabilityWindow.Duration
	}
	return max(f.MinTimeBetweenFailovers.Duration, 0), max(window, 0)
}

// settled is when the last failover had settled, or will have if the primary stays healthy.
func (p *pass) settled(window time.Duration) time.Time {
	if s := p.st.LastFailoverSettled; s != nil && !s.Time.Before(p.last.At) {
		return s.Time
	}
	if h := p.st.PrimaryHealthySince; h != nil && !h.Time.Before(p.last.At) {
		return h.Add(window)
	}
	return p.last.At
}

// stretch keeps the start of the primary's healthy stretch. What breaks one is a failure that was seen; that the
// operator could not look, or was not there, breaks none.
func (p *pass) stretch() {
	if p.pending() != nil || p.evidence(p.primary()).state != healthy {
		return
	}
	if since := p.st.PrimaryFailingSince; since != nil {
		p.endStretch(since.Time)
		p.st.PrimaryFailingSince = nil
	}
	if p.st.PrimaryHealthySince == nil {
		now := p.now()
		p.st.PrimaryHealthySince = &now
	}
}

// endStretch ends a healthy stretch. One that was long enough has settled the last failover, for good.
func (p *pass) endStretch(at time.Time) {
	since := p.st.PrimaryHealthySince
	p.st.PrimaryHealthySince = nil
	least, window := p.braking()
	if since == nil || least == 0 || window == 0 || p.last == nil || p.st.LastFailoverSettled != nil || since.Time.Before(p.last.At) || at.Sub(since.Time) < window {
		return
	}
	settled := metav1.NewTime(since.Add(window).Truncate(time.Second))
	p.st.LastFailoverSettled = &settled
}

// counts tells that a promotion is one of those that the brake counts: the operator's own answer to a failure.
func counts(t *api.PrimaryTransition) bool {
	return t.Cause == api.CauseFailed || t.Cause == api.CauseUnreachable || t.Cause == "" && t.Kind == api.TransitionFailover
}

// braked holds an automatic failover back; false when it may go on.
func (p *pass) braked(why string) bool {
	h := p.brake()
	if !h.back() {
		return false
	}
	if h.problem != "" {
		if !p.said(api.ReasonHistoryUnreadable) {
			p.warn(api.EventFailoverBlocked, "the primary %s has failed (%s), and the last failover is not known: %s", p.st.CurrentPrimary, why, h.problem)
		}
		p.block(api.ReasonHistoryUnreadable, "the primary %s has failed (%s), and minTimeBetweenFailovers cannot be kept, because the last failover is not known: %s; correct it, or remove status.lastFailoverTimestamp, status.lastFailoverTarget and status.lastFailoverGeneration or the annotations %s, %s and %s",
			p.st.CurrentPrimary, why, h.problem, api.AnnotationLastFailover, api.AnnotationLastFailoverTarget, api.AnnotationLastFailoverGeneration)
		return true
	}
	least, _ := p.braking()
	if !p.said(api.ReasonFailoverBraked) {
		p.warn(api.EventFailoverBlocked, "the primary %s has failed (%s); the last failover was at %s, and minTimeBetweenFailovers (%s) holds back another", p.st.CurrentPrimary, why, p.last.At.Format(time.RFC3339), least)
		p.d.Logs = append(p.d.Logs, Log{Message: api.LogFailoverBraked, Fields: []any{"lastFailover", p.last.At.Format(time.RFC3339), "cooldown", least.String()}})
	}
	p.block(api.ReasonFailoverBraked, "the primary %s has failed (%s); a failover is %s", p.st.CurrentPrimary, why, h)
	p.recheck(h.left)
	return true
}

// String says until when, so that it stays the same while nothing changes.
func (h held) String() string {
	if h.problem != "" {
		return "held back, because the last failover is not known: " + h.problem
	}
	return fmt.Sprintf("held back until %s by failoverPolicy.minTimeBetweenFailovers", ceil(h.until).UTC().Format(time.RFC3339))
}

// ceil is the next full second.
func ceil(t time.Time) time.Time {
	if down := t.Truncate(time.Second); down.Before(t) {
		return down.Add(time.Second)
	}
	return t
}
