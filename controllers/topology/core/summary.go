package core

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// summarise says in the status what all of it means.
func (p *pass) summarise() {
	st := p.st
	st.ObservedGeneration = p.c.Generation
	st.Flavor, st.Image = p.c.Spec.Flavor, p.c.Spec.ImageName
	st.Instances = int32(len(st.InstanceNames)) // #nosec G115 -- at most 100
	st.LabelSelector = api.LabelCluster + "=" + p.c.Name
	st.ReadyInstances = 0
	for _, i := range p.s.Instances {
		if p.isMember(i.Name) && i.Pod != nil && i.Pod.Ready && !i.going() {
			st.ReadyInstances++
		}
	}
	if p.say.keep {
		return
	}
	lacking, new := p.lacking()
	complete := st.ReadyInstances == p.c.Spec.Instances && st.Instances == p.c.Spec.Instances && len(lacking) == 0
	if p.say.phase == api.PhaseReady && !complete {
		p.say.phase, p.say.reason, p.say.message = api.PhaseDegraded, api.ReasonInstancesNotReady, strings.Join(lacking, "; ")
		if new {
			p.say.reason, p.say.making = api.ReasonProvisioning, true
		}
		if st.EstablishedAt == nil {
			p.say.phase, p.say.reason = api.PhaseProvisioning, api.ReasonProvisioning
		}
		if reason := p.firstTrouble(); reason != "" {
			p.say.reason = reason
		}
	}
	if p.say.phase == api.PhaseReady && complete && st.EstablishedAt == nil {
		now := metav1.NewTime(p.s.Now)
		st.EstablishedAt = &now
		p.event(api.EventEstablished, "all %d instances are ready; the primary is %s", st.ReadyInstances, st.CurrentPrimary)
	}
	if p.s.SpecProblem != "" && p.say.message == "" {
		p.say.message = "the specification cannot be carried out: " + p.s.SpecProblem
	}
	st.Phase, st.PhaseReason = p.say.phase, p.say.message
	p.conditions()
}

// lacking says what keeps the Cluster from being complete; new tells that all of it is instances being made
// for the first time.
func (p *pass) lacking() (why []string, new bool) {
	new = true
	for _, name := range p.st.InstanceNames {
		i := p.s.instance(name)
		_, seen := p.st.GTIDExecutedByInstance[name]
		if text := p.lack(name, i, !seen); text != "" {
			why = append(why, text)
			new = new && !seen
		}
	}
	if missing := int(p.c.Spec.Instances) - len(p.st.InstanceNames); missing > 0 {
		text := fmt.Sprintf("%d more to be created", missing)
		if n := len(p.st.InstanceNames); n > 0 {
			if i := p.s.instance(p.st.InstanceNames[n-1]); i == nil || i.Pod == nil || !i.Pod.Ready {
				text += ", once " + p.st.InstanceNames[n-1] + " is Ready"
			}
		}
		why = append(why, text)
	}
	if extra := len(p.st.InstanceNames) - int(p.c.Spec.Instances); extra > 0 && len(why) == 0 {
		why = append(why, fmt.Sprintf("%d to be removed", extra))
		new = false
	}
	return why, new
}

// lack says what is wrong with one instance; empty when nothing is.
func (p *pass) lack(name string, i *Instance, new bool) string {
	if message, _ := trouble(i); message != "" {
		return message
	}
	switch {
	case p.fenced(name):
		return name + " is fenced"
	case p.diverged(name):
		return fmt.Sprintf("%s has diverged from the primary (%s)", name, p.mark(name).GTIDSet)
	case slices.Contains(p.st.ReplicationBrokenInstances, name):
		r := i.Report.MySQL.Replication
		return strings.TrimSpace(fmt.Sprintf("%s does not replicate: %s %s", name, r.SQLError, r.IOError))
	case i.noRoom() != "":
		return name + " cannot write: " + i.noRoom()
	case i == nil || i.Pod == nil || i.Report != nil && i.Report.Provision != nil:
		return progress(name, i)
	case i.going():
		return name + " is being stopped"
	case i.Pod.Ready:
		return ""
	case p.heldBack(i):
		return "behind maxReadyLag: " + name
	case new:
		return progress(name, i)
	}
	return name + " is not Ready"
}

// firstTrouble is the reason of the first trouble that an instance has; empty when none has any.
func (p *pass) firstTrouble() string {
	for _, name := range p.st.InstanceNames {
		if _, reason := trouble(p.s.instance(name)); reason != "" {
			return reason
		}
	}
	switch {
	case len(p.names(func(i *Instance) bool { return p.isMember(i.Name) && i.noRoom() != "" })) > 0:
		return api.ReasonVolumeNotWritable
	case len(p.st.DivergedInstances) > 0:
		return api.ReasonDiverged
	case len(p.st.ReplicationBrokenInstances) > 0:
		return api.ReasonReplicationBroken
	case slices.ContainsFunc(p.st.InstanceNames, p.fenced):
		return api.ReasonFenced
	case len(p.heldBackNames()) > 0:
		return api.ReasonBehindMaxReadyLag
	}
	return ""
}

// conditions derives Ready, Progressing, Degraded, FailoverBlocked and UpToDate.
func (p *pass) conditions() {
	phase := p.st.Phase
	message := p.st.PhaseReason
	p.condition(api.ConditionReady, phase == api.PhaseReady, p.say.reason, or(message, "a writable primary and every replica are ready"))
	progressing := phase == api.PhaseProvisioning || phase == api.PhaseSwitchover || phase == api.PhaseFailingOver || p.say.making
	p.condition(api.ConditionProgressing, progressing, p.say.reason, or(message, "nothing is being changed"))
	degraded := phase == api.PhaseDegraded || phase == api.PhaseBlocked || phase == api.PhaseFailingOver
	p.condition(api.ConditionDegraded, degraded, p.say.reason, or(message, "nothing is missing"))
	blocked, reason := p.say.blocked, p.say.reason
	if !blocked {
		reason, message = api.ReasonNotFailing, "no failover is held back"
	}
	p.condition(api.ConditionFailoverBlocked, blocked, reason, message)
	p.specValid()
	p.upToDate()
}

// upToDate says whether every Pod and volume is as the present specification asks for.
func (p *pass) upToDate() {
	var small, why []string
	for _, i := range p.s.Instances {
		for _, v := range i.Volumes {
			if v.Small != "" && p.isMember(i.Name) {
				small = append(small, v.Name+" "+v.Small)
			}
		}
	}
	reason := api.ReasonReconciled
	if len(small) > 0 {
		reason = api.ReasonConfigurationNotApplied
		why = append(why, "volumes are not grown by the operator yet: "+strings.Join(small, ", ")+
			"; raise spec.resources.requests.storage of these claims yourself, if their class allows it")
	}
	if outdated := p.names(func(i *Instance) bool { return i.Pod != nil && i.Pod.Outdated || stale(i) }); len(outdated) > 0 {
		reason = api.ReasonPodsOutdated
		why = append(why, fmt.Sprintf("made from an earlier specification: %s; delete these Pods one at a time, the primary's last, to apply the present one", strings.Join(outdated, ", ")))
	}
	p.condition(api.ConditionUpToDate, len(why) == 0, reason, or(strings.Join(why, "; "), "every Pod and volume is as the present specification asks for"))
}

// specValid says whether the specification can be carried out, as admission would have.
func (p *pass) specValid() {
	if p.s.SpecProblem == "" {
		p.condition(api.ConditionSpecValid, true, api.ReasonValid, "the specification can be carried out")
		return
	}
	old := meta.FindStatusCondition(p.c.Status.Conditions, api.ConditionSpecValid)
	if old == nil || old.Status != metav1.ConditionFalse || old.Message != p.s.SpecProblem {
		p.warn(api.EventInvalidSpec, "%s", p.s.SpecProblem)
	}
	p.condition(api.ConditionSpecValid, false, api.ReasonInvalid, p.s.SpecProblem)
}

// stale tells that a server runs with another configuration than the specification asks for.
func stale(i *Instance) bool {
	return i.Report != nil && i.Report.Server.ConfigHash != "" && i.Report.Server.WantedConfigHash != "" && i.Report.Server.ConfigHash != i.Report.Server.WantedConfigHash
}

func (p *pass) condition(kind string, is bool, reason, message string) {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&p.st.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: or(reason, api.ReasonReconciled), Message: message,
		ObservedGeneration: p.c.Generation, LastTransitionTime: metav1.NewTime(p.s.Now),
	})
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
