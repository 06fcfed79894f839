package sim

import (
	"fmt"
	"strings"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
)

// say adds a line to the story, if one is told.
func (w *World) say(who, format string, args ...any) {
	if w.tell != nil {
		w.tell(w.t, who, fmt.Sprintf(format, args...))
	}
}

// moved says what of a status about the primary has changed.
func moved(a, b *api.ClusterStatus) string {
	var all []string
	if a.CurrentPrimary != b.CurrentPrimary || a.CurrentPrimaryGeneration != b.CurrentPrimaryGeneration {
		all = append(all, fmt.Sprintf("currentPrimary=%s generation=%d", b.CurrentPrimary, b.CurrentPrimaryGeneration))
	}
	if s, t := transition(a), transition(b); s != t {
		all = append(all, "transition="+t)
	}
	if s, t := fmt.Sprint(a.DivergedInstances), fmt.Sprint(b.DivergedInstances); s != t {
		all = append(all, "diverged="+t)
	}
	if a.TargetPrimary != b.TargetPrimary {
		all = append(all, "targetPrimary="+b.TargetPrimary)
	}
	if e := b.LastElection; e != nil && (a.LastElection == nil || a.LastElection.Verdict != e.Verdict) {
		all = append(all, "election: "+e.Verdict)
	}
	return strings.Join(all, " ")
}

func transition(s *api.ClusterStatus) string {
	t := s.PrimaryTransition
	if t == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s→%s generation %d (%s)", t.Kind, t.From, t.To, t.Generation, t.Attempt)
}

func actions(d core.Decision) string {
	var all []string
	for _, a := range append(append([]core.Action{}, d.First...), d.Actions...) {
		text := string(a.Kind) + " " + a.Instance
		if a.Kind == core.LabelPod {
			text += fmt.Sprintf(" %q routable=%t", a.Role, a.Routable)
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return ""
	}
	return "[" + strings.Join(all, ", ") + "]"
}
