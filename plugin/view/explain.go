package view

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
)

// Explained is an explanation with what could not be read for it.
type Explained struct {
	core.Explanation
	Notes []string `json:"notes,omitempty"`
}

// Text is the explanation for a person. It tells no ages but those in the snapshot.
func (e Explained) Text(time.Time) string {
	var b strings.Builder
	head := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(label, text string) { _, _ = fmt.Fprintf(head, "%s\t%s\n", label, text) }
	row("Cluster", fmt.Sprintf("%s, as of %s", e.Cluster, e.At.UTC().Format(time.RFC3339)))
	if e.Primary == "" {
		row("Primary", "none")
	} else {
		row("Primary", fmt.Sprintf("%s in generation %d: %s", e.Primary, e.Generation, e.Evidence))
	}
	row("Lease", e.Lease)
	_ = head.Flush()
	fmt.Fprintf(&b, "\nNow: %s\n", ruleText(e.Decision))
	e.outcomeText(&b, e.Decision)
	prospectsText(&b, e.Instances)
	for n, step := range e.WithoutPrimary {
		then := "What if"
		if n > 0 {
			then = "And if"
		}
		fmt.Fprintf(&b, "\n%s %s: %s\n", then, step.Assuming, ruleText(step.Outcome))
		e.outcomeText(&b, step.Outcome)
	}
	if len(e.NotAsked) > 0 {
		fmt.Fprintf(&b, "\nWhat would follow without %s nobody can tell: not asked were %s\n", e.Primary, strings.Join(e.NotAsked, ", "))
	}
	for _, n := range e.Notes {
		fmt.Fprintf(&b, "\nNote: %s\n", n)
	}
	b.WriteString("\nNothing was changed. The rules are listed in docs/primary.md; docs/explain.md says how to read this.\n")
	return b.String()
}

// ruleText names a rule by its place in the documentation.
func ruleText(o core.Outcome) string {
	if o.Number == 0 {
		return o.Rule
	}
	return fmt.Sprintf("rule %d, %s", o.Number, o.Rule)
}

func (e Explained) outcomeText(b *strings.Builder, o core.Outcome) {
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	row := func(label, text string) {
		if text != "" {
			_, _ = fmt.Fprintf(w, "  %s\t%s\n", label, text)
		}
	}
	if o.Phase != "" {
		row("state", fmt.Sprintf("%s (%s)", o.Phase, o.Reason))
	}
	row("because", o.Message)
	row("in general", o.Does)
	rows(row, "writes", writes(o.Writes))
	rows(row, "does", o.Actions)
	rows(row, "tells", o.Events)
	if o.Winner != "" {
		row("primary", o.Winner)
	} else if o.Blocked {
		row("primary", "nobody: a failover is blocked")
	}
	row("goes on", o.WaysOn)
	if o.Recheck != nil {
		row("looks again", "in "+o.Recheck.Duration.Round(time.Millisecond).String()+", or when something changes")
	}
	_ = w.Flush()
	e.electionText(b, o.Election)
}

// rows are a list under one label; an empty one is said to be empty.
func rows(row func(label, text string), label string, list []string) {
	if len(list) == 0 {
		list = []string{"nothing"}
	}
	for _, text := range list {
		row(label, text)
		label = ""
	}
}

// longestValue is how much of a value is shown, in characters; -o json has all of it.
const longestValue = 120

func writes(changes []core.Change) []string {
	var all []string
	for _, c := range changes {
		all = append(all, fmt.Sprintf("%s: %s → %s", c.Field, shortened(or(c.From, "absent")), shortened(or(c.To, "absent"))))
	}
	return all
}

func shortened(text string) string {
	if r := []rune(text); len(r) > longestValue {
		return string(r[:longestValue-1]) + "…"
	}
	return text
}

func (e Explained) electionText(b *strings.Builder, held *api.Election) {
	if held == nil {
		return
	}
	fmt.Fprintf(b, "  the election: %s\n", held.Verdict)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "    CANDIDATE\tELIGIBLE\tMISSING\tVERDICT")
	for _, c := range held.Candidates {
		verdict := c.Reason
		if c.Instance == held.Winner {
			verdict = "is chosen"
		}
		missing := "-" // of one that was not read nobody knows
		if slices.ContainsFunc(e.Instances, func(p core.Prospect) bool { return p.Instance == c.Instance && p.Held != nil }) {
			missing = fmt.Sprint(c.Missing)
		}
		_, _ = fmt.Fprintf(w, "    %s\t%s\t%s\t%s\n", c.Instance, yesNo(&c.Eligible), missing, or(verdict, "-"))
	}
	_ = w.Flush()
}

func prospectsText(b *strings.Builder, list []core.Prospect) {
	b.WriteString("\nInstances (counts of transactions)\n")
	if len(list) == 0 {
		b.WriteString("  none\n")
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "  NAME\tROLE\tANSWERS\tEXECUTED\tRECEIVED\tHELD\tUNAPPLIED\tMISSING\tERRANT\tLAG\tHEARD\tPREFERRED\tAS TARGET OF A SWITCHOVER")
	for _, p := range list {
		lag, preferred := "-", "-"
		if p.LagSeconds != nil {
			lag = fmt.Sprintf("%ds", *p.LagSeconds)
		}
		if p.Preference > 0 {
			preferred = fmt.Sprint(p.Preference)
		}
		_, _ = fmt.Fprintf(w, "  %s\n", strings.Join([]string{
			p.Instance, p.Role, p.Answers, number(p.Executed), number(p.Received), number(p.Held), number(p.Unapplied), number(p.Missing),
			fmt.Sprint(p.ErrantCount), lag, duration(p.HeartbeatAge), preferred, p.Switchover,
		}, "\t"))
	}
	_ = w.Flush()
	for _, p := range list {
		if p.Errant != "" {
			fmt.Fprintf(b, "  only %s holds %s\n", p.Instance, p.Errant)
		}
	}
	if !slices.ContainsFunc(list, func(p core.Prospect) bool { return p.Missing != nil }) {
		return
	}
	b.WriteString("  (missing: of what the primary is known to have executed; heard: its source, how long ago)\n")
}

func number(n *uint64) string {
	if n == nil {
		return "-"
	}
	return fmt.Sprint(*n)
}

func duration(d *metav1.Duration) string {
	if d == nil {
		return "-"
	}
	return d.Duration.Round(100 * time.Millisecond).String()
}
