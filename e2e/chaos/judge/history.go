package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Change is one version of an object: a Pod, or the Cluster. Revisions order the changes of all objects.
type Change struct {
	Revision int64
	Seen     time.Time
	// Pod and UID name the Pod that changed; both are empty for the Cluster.
	Pod, UID string
	// Primary tells that the Pod carries the primary's label.
	Primary bool
	// CurrentPrimary and Generation are the Cluster's.
	CurrentPrimary string
	Generation     int64
}

// Terms are the generations that a history shows, in ascending order.
func Terms(history []Change) []Term {
	var terms []Term
	for _, c := range sorted(history) {
		if c.Pod == "" && c.Generation > 0 && c.Generation > last(terms) {
			terms = append(terms, Term{c.Generation, c.CurrentPrimary})
		}
	}
	return terms
}

// Generations says where a history of the Cluster breaks the rule that the primary changes with the generation, which grows by one.
func Generations(history []Change) []string {
	var broken []string
	var before *Change
	for _, c := range sorted(history) {
		if c.Pod != "" {
			continue
		}
		if before != nil {
			switch {
			case c.Generation == before.Generation && c.CurrentPrimary != before.CurrentPrimary:
				broken = append(broken, fmt.Sprintf("the primary became %s instead of %s in the same generation %d", c.CurrentPrimary, before.CurrentPrimary, c.Generation))
			case c.Generation != before.Generation && c.Generation != before.Generation+1:
				broken = append(broken, fmt.Sprintf("generation %d followed %d", c.Generation, before.Generation))
			}
		}
		before = &c
	}
	return broken
}

// Labels says where the primary's label was wrong: on two Pods at once, or given to one that was not the current
// primary. stale is the longest time that a Pod kept it after the role had passed on: the Service then led to
// an instance that takes no writes, which is no fault as long as it ends.
func Labels(history []Change) (broken []string, stale time.Duration) {
	carriers := map[string]Change{} // by UID
	current, known := "", false
	passed := map[string]time.Time{} // since when a carrier is not the primary any more
	for _, c := range sorted(history) {
		if c.Pod == "" {
			current, known = c.CurrentPrimary, true
		} else if problem := relabel(carriers, c, current, known); problem != "" {
			broken = append(broken, problem)
		}
		for uid, since := range passed {
			if p, still := carriers[uid]; !still || p.Pod == current {
				stale = max(stale, c.Seen.Sub(since))
				delete(passed, uid)
			}
		}
		for uid, p := range carriers {
			if _, noted := passed[uid]; !noted && known && p.Pod != current {
				passed[uid] = c.Seen
			}
		}
	}
	return broken, stale
}

// relabel takes a Pod's change in.
func relabel(carriers map[string]Change, c Change, current string, known bool) string {
	_, had := carriers[c.UID]
	if !c.Primary {
		delete(carriers, c.UID)
		return ""
	}
	carriers[c.UID] = c
	switch {
	case had:
		return ""
	case len(carriers) > 1:
		var names []string
		for _, p := range carriers {
			names = append(names, p.Pod)
		}
		slices.Sort(names)
		return "the primary's label is on " + strings.Join(names, " and ")
	case known && c.Pod != current:
		return fmt.Sprintf("the primary's label was given to %s while %s was the primary", c.Pod, current)
	}
	return ""
}

func sorted(history []Change) []Change {
	out := slices.Clone(history)
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(a.Revision, b.Revision) })
	return out
}
