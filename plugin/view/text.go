package view

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Text is the status for a person. Ages are counted from now.
func (s Status) Text(now time.Time) string {
	var b strings.Builder
	head := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(label, format string, args ...any) {
		_, _ = fmt.Fprintf(head, "%s\t%s\n", label, fmt.Sprintf(format, args...))
	}
	row("Cluster", "%s/%s (%s, image %s)", s.Namespace, s.Cluster, s.Flavor, s.Image)
	row("State", "%s", join(s.Phase, s.Reason))
	if !s.UpToDate {
		row("", "the operator has not looked at the latest change of the specification yet")
	}
	s.primaryText(row, now)
	s.leaseText(row, now)
	s.semiSyncText(row)
	_ = head.Flush()
	b.WriteString("\n")
	s.instancesText(&b, now)
	s.conditionsText(&b, now)
	for _, n := range s.Notes {
		fmt.Fprintf(&b, "\nNote: %s\n", n)
	}
	return b.String()
}

type rowFunc func(label, format string, args ...any)

func (s Status) primaryText(row rowFunc, now time.Time) {
	p := s.Primary
	if p.Instance == "" {
		row("Primary", "none yet")
	} else {
		row("Primary", "%s, for %s (%s; generation %d)", p.Instance, since(p.Since, now), p.Why, p.Generation)
	}
	if p.FailingSince != nil {
		row("", "it has FAILED, first seen %s ago", since(p.FailingSince, now))
	}
	switch t := s.Transition; {
	case t == nil && p.Asked != "":
		row("Asked for", "%s as the primary; the operator has not accepted it yet", p.Asked)
	case t == nil:
	case t.From == "":
		row("Moving", "%s becomes the first primary, under way for %s", t.To, age(now.Sub(t.Since)))
	default:
		row("Moving", "%s → %s (%s, under way for %s: %s)", t.From, t.To, t.Kind, age(now.Sub(t.Since)), t.Why)
	}
}

func (s Status) leaseText(row rowFunc, now time.Time) {
	l := s.Lease
	switch {
	case !l.Known:
		row("Lease", "unknown")
	case l.Holder == "":
		row("Lease", "free: no instance may write")
	case l.FormerPod:
		row("Lease", "held by a former Pod of %s, for %s", l.Holder, since(l.Since, now))
	case l.Holder != s.Primary.Instance:
		row("Lease", "held by %s, which is not the primary, for %s", l.Holder, since(l.Since, now))
	default:
		row("Lease", "held by %s, for %s", l.Holder, since(l.Since, now))
	}
}

func (s Status) semiSyncText(row rowFunc) {
	y := s.SemiSync
	switch {
	case y == nil:
		row("Semi-sync", "off: a failover may lose the last writes")
	case !y.Known:
		row("Semi-sync", "unknown (%d acknowledgements wanted)", y.Wanted)
	case !y.Active:
		row("Semi-sync", "NOT ACTIVE: commits do not wait (%d acknowledgements wanted)", y.Wanted)
	default:
		by := "nobody"
		if len(y.Ackers) > 0 {
			by = strings.Join(y.Ackers, ", ")
		}
		row("Semi-sync", "each commit waits for %d of: %s", y.WaitFor, by)
	}
}

func (s Status) instancesText(b *strings.Builder, now time.Time) {
	ready := unknown
	if s.Ready != nil {
		ready = fmt.Sprint(*s.Ready)
	}
	fmt.Fprintf(b, "Instances: %s of %d ready\n", ready, s.Wanted)
	if len(s.Instances) == 0 {
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "  NAME\tROLE\tREADY\tBEHIND\tLAG\tSOURCE\tPOD\tNODE\tAGE")
	tree := s.tree()
	var troubles []string
	for n, i := range tree {
		_, _ = fmt.Fprintf(w, "  %s%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", s.branch(n, tree), i.Name, i.Role, yesNo(i.Ready), s.behindText(i), lagText(i),
			or(i.Source, "-"), podText(i), or(i.Node, "-"), since(i.Created, now))
		for _, t := range i.Trouble {
			troubles = append(troubles, "  "+i.Name+" "+t)
		}
	}
	_ = w.Flush()
	if s.RecordedAt != nil {
		fmt.Fprintf(b, "  (behind: transactions, as recorded %s ago; lag: by the heartbeat)\n", since(s.RecordedAt, now))
	}
	if len(troubles) > 0 {
		fmt.Fprintf(b, "\nTroubles\n%s\n", strings.Join(troubles, "\n"))
	}
}

// tree is the primary first, then who follows it, then the others.
func (s Status) tree() []Instance {
	rank := func(i Instance) int {
		switch {
		case i.Name == s.Primary.Instance:
			return 0
		case i.Source != "" && i.Source == s.Primary.Instance:
			return 1
		}
		return 2
	}
	out := slices.Clone(s.Instances)
	slices.SortStableFunc(out, func(a, b Instance) int { return rank(a) - rank(b) })
	return out
}

// branch is what stands before the name of a replica that follows the primary.
func (s Status) branch(n int, tree []Instance) string {
	follows := func(n int) bool { return n < len(tree) && tree[n].Source != "" && tree[n].Source == s.Primary.Instance }
	switch {
	case !follows(n):
		return ""
	case follows(n + 1):
		return "├─ "
	}
	return "└─ "
}

func (s Status) behindText(i Instance) string {
	switch {
	case i.Name == s.Primary.Instance:
		return "-"
	case i.Behind == nil:
		return unknown
	}
	return fmt.Sprint(*i.Behind)
}

func lagText(i Instance) string {
	if i.LagMillis == nil {
		return "-"
	}
	return (time.Duration(*i.LagMillis) * time.Millisecond).String()
}

func podText(i Instance) string {
	if i.Restarts > 0 {
		return fmt.Sprintf("%s (%d restarts)", i.Pod, i.Restarts)
	}
	return i.Pod
}

func (s Status) conditionsText(b *strings.Builder, now time.Time) {
	fmt.Fprint(b, "\nConditions\n")
	if len(s.Conditions) == 0 {
		fmt.Fprintf(b, "  %s\n", unknown)
		return
	}
	list := slices.Clone(s.Conditions)
	slices.SortStableFunc(list, func(a, b Condition) int {
		if a.Good == b.Good {
			return strings.Compare(a.Type, b.Type)
		}
		if b.Good {
			return -1
		}
		return 1
	})
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, c := range list {
		mark := "✗"
		if c.Good {
			mark = "✓"
		}
		_, _ = fmt.Fprintf(w, "  %s %s\t%s\t%s\t%s\n", mark, c.Type, strings.ToLower(c.Status), age(now.Sub(c.Since)), join(c.Reason, c.Message))
	}
	_ = w.Flush()
}

func yesNo(b *bool) string {
	switch {
	case b == nil:
		return unknown
	case *b:
		return "yes"
	}
	return "no"
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func since(t *time.Time, now time.Time) string {
	if t == nil || t.IsZero() {
		return unknown
	}
	return age(now.Sub(*t))
}

// age is a duration as kubectl shows it: two units at most.
func age(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 10*time.Minute:
		return fmt.Sprintf("%dm%ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 3*time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours())/24)
}
