package core

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

const (
	// failbackBehind is how far, in seconds, a preferred instance may be behind when the role returns to it.
	failbackBehind = 10
	// firstFailbackPause and longestFailbackPause are between tries that had to be ended: each of them makes
	// writes stand still.
	firstFailbackPause   = 10 * time.Minute
	longestFailbackPause = 24 * time.Hour
)

// failBack moves the role from a healthy primary to an instance that is preferred to it.
func (p *pass) failBack() bool {
	if p.pending() != nil || p.st.CurrentPrimary == "" {
		return false
	}
	to := p.preferredFit()
	if to == "" {
		return false
	}
	if why, left := p.failbackWaits(to); why != "" {
		p.note = fmt.Sprintf("the role is to return to %s, which is preferred; waiting for %s", to, why)
		if left > 0 {
			p.recheck(left)
		}
		return false
	}
	p.start(api.TransitionSwitchover, api.CausePreferred, to, "it is preferred")
	p.event(api.EventSwitchoverStarted, "the primary moves from %s to %s, which is preferred", p.st.CurrentPrimary, to)
	p.moves(p.st.PrimaryTransition)
	return true
}

// preferredFit is the most preferred instance that could take the role now; empty when that is the primary, or
// there is none.
func (p *pass) preferredFit() string {
	for _, name := range p.preferred() {
		if name == p.st.CurrentPrimary {
			return ""
		}
		if pod := p.s.instance(name); p.unfit(name) == "" && pod.Pod.Ready && (!pod.Pod.Cordoned || !p.drains()) {
			return name
		}
	}
	return ""
}

// failbackWaits says what a return waits for, and for how long if that is known.
func (p *pass) failbackWaits(to string) (why string, left time.Duration) {
	if h := p.brake(); h.back() {
		return "its time, " + h.String(), h.left
	}
	if len(p.st.InstanceNames) < int(p.c.Spec.Instances) {
		return "all instances to be made", 0
	}
	for _, i := range p.s.Instances {
		if p.isMember(i.Name) && i.Report != nil && i.Report.Provision != nil {
			return i.Name + " to be made", 0
		}
	}
	if behind := p.s.instance(to).Report.MySQL.Replication.SecondsBehind; behind == nil || *behind > failbackBehind {
		return "it to catch up", 0
	}
	return p.failbackPaused(to)
}

// failbackPaused says until when, because the last move to an instance had to be ended.
func (p *pass) failbackPaused(to string) (why string, left time.Duration) {
	f := p.st.Failback
	if f == nil || f.Instance != to {
		return "", 0
	}
	again := f.EndedAt.Add(failbackPause(f.Attempts))
	if left = again.Sub(p.s.Now); left <= 0 {
		return "", 0
	}
	return fmt.Sprintf("%s, because the last try was ended: %s", again.UTC().Format(time.RFC3339), f.Reason), left
}

// failbackPause is how long to wait after so many tries that were ended.
func failbackPause(attempts int32) time.Duration {
	pause := firstFailbackPause
	for n := int32(1); n < attempts && pause < longestFailbackPause; n++ {
		pause *= 2
	}
	return min(pause, longestFailbackPause)
}

// rememberFailback keeps that a return had to be ended, so that it is not tried again at once.
func (p *pass) rememberFailback(t *api.PrimaryTransition, why string) {
	if t.Cause != api.CausePreferred && t.Cause != api.CauseCordoned {
		return
	}
	attempts := int32(1)
	if f := p.st.Failback; f != nil && f.Instance == t.To {
		attempts = min(f.Attempts, 1000) + 1
	}
	p.st.Failback = &api.FailbackStatus{Instance: t.To, Reason: why, Attempts: attempts, EndedAt: metav1.NewTime(p.s.Now)}
}
