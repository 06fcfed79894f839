package core

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Change is one field of the status that is written, as it was and as it becomes; empty for absent. Values are JSON,
// and for a condition its status and reason. The phase's reason and the election are not among them: Outcome has them.
type Change struct {
	Field string `json:"field"`
	From  string `json:"from,omitempty"`
	To    string `json:"to,omitempty"`
}

// outcomeOf is a decision about a snapshot, in words.
func outcomeOf(s *Snapshot, d Decision) Outcome {
	o := Outcome{
		Rule: d.Rule, Phase: d.Status.Phase, Message: d.Status.PhaseReason, Writes: changes(&s.Cluster.Status, &d.Status),
	}
	for n, r := range PrimaryRules {
		if r.Name == d.Rule {
			o.Number, o.Does = n+1, r.Does
		}
	}
	if d.Refresh {
		o.Writes, o.Message = nil, "asks every instance anew before it decides"
		return o
	}
	if ready := meta.FindStatusCondition(d.Status.Conditions, api.ConditionReady); ready != nil {
		o.Reason = ready.Reason
	}
	o.Blocked = meta.IsStatusConditionTrue(d.Status.Conditions, api.ConditionFailoverBlocked)
	for _, a := range slices.Concat(d.First, d.Actions) {
		o.Actions = append(o.Actions, a.String())
	}
	for _, e := range d.Events {
		o.Events = append(o.Events, e.Reason+": "+e.Message)
	}
	if e := d.Status.LastElection; e != nil && !equality.Semantic.DeepEqual(e, s.Cluster.Status.LastElection) {
		o.Election = e
	}
	if t := pending(&d.Status); t != nil {
		o.Winner = t.To
	} else if o.Election != nil {
		o.Winner = o.Election.Winner
	}
	if o.Winner == "" {
		o.WaysOn = waysOn[o.Reason]
	}
	if d.Recheck > 0 {
		o.Recheck = &metav1.Duration{Duration: d.Recheck}
	}
	return o
}

// same tells that two outcomes come to the same, whatever had to be written for it.
func (o Outcome) same(other Outcome) bool {
	return o.Rule == other.Rule && o.Reason == other.Reason && o.Message == other.Message && o.Winner == other.Winner
}

// String is what is done and why, in a sentence.
func (a Action) String() string {
	text := string(a.Kind)
	switch a.Kind {
	case LabelPod:
		text += fmt.Sprintf(" %s: role %s, routable %t", a.Instance, orNone(a.Role), a.Routable)
	case RecordFailover, ClearAcceptLoss:
	default:
		text += " " + a.Instance
	}
	if a.Why != "" && a.Kind != LabelPod {
		text += " (" + a.Why + ")"
	}
	return text
}

// changes are the fields that differ, by name; of the conditions each one.
func changes(from, to *api.ClusterStatus) []Change {
	before, after := fields(from), fields(to)
	all := conditionChanges(from, to)
	for name, was := range before {
		if is := after[name]; is != was {
			all = append(all, Change{name, was, is})
		}
	}
	for name, is := range after {
		if _, there := before[name]; !there {
			all = append(all, Change{name, "", is})
		}
	}
	slices.SortFunc(all, func(a, b Change) int { return strings.Compare(a.Field, b.Field) })
	return all
}

// fields are those of a status, by name.
func fields(st *api.ClusterStatus) map[string]string {
	parts := map[string]json.RawMessage{}
	raw, err := json.Marshal(st)
	if err == nil {
		err = json.Unmarshal(raw, &parts)
	}
	if err != nil {
		return map[string]string{"": "cannot be written as JSON: " + err.Error()}
	}
	// These three are shown otherwise.
	delete(parts, "conditions")
	delete(parts, "phaseReason")
	delete(parts, "lastElection")
	all := map[string]string{}
	for name, value := range parts {
		all[name] = string(value)
	}
	return all
}

// conditionChanges are the conditions that differ. A message that is the phase's reason is not repeated.
func conditionChanges(from, to *api.ClusterStatus) []Change {
	text := func(st *api.ClusterStatus, c *metav1.Condition) string {
		switch {
		case c == nil:
			return ""
		case c.Message == "" || c.Message == st.PhaseReason:
			return string(c.Status) + ", " + c.Reason
		}
		return string(c.Status) + ", " + c.Reason + ": " + c.Message
	}
	var all []Change
	for n := range to.Conditions {
		is := &to.Conditions[n]
		was := meta.FindStatusCondition(from.Conditions, is.Type)
		if was == nil || was.Status != is.Status || was.Reason != is.Reason || was.Message != is.Message {
			all = append(all, Change{"conditions[" + is.Type + "]", text(from, was), text(to, is)})
		}
	}
	return all
}
