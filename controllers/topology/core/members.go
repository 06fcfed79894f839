package core

import (
	"slices"

	api "cnmsql.co/operator/api/v1alpha1"
)

// members decides which instances there are, and that each has its volumes and its Pod. It runs whatever
// the rule about the primary said: a Cluster without a primary heals only if its Pods are made.
func (p *pass) members() {
	p.scaleDown()
	p.scaleUp()
	for _, name := range p.st.InstanceNames {
		p.ensure(name)
	}
	if p.st.CurrentPrimary == "" {
		// Without a primary the list of instances may be what was lost.
		return
	}
	for _, i := range p.s.Instances {
		if i.Pod != nil && !i.going() && !p.isMember(i.Name) && i.Name != p.st.CurrentPrimary && !p.disrupted {
			p.act(Action{Kind: DeletePod, Instance: i.Name, PodUID: i.Pod.UID, Why: "the instance was removed",
				Done: done(api.EventInstanceDeleted, "the Pod %s is deleted; its volumes are kept", i.Name)})
		}
	}
}

// scaleDown takes the newest instance that is not the primary out of the Cluster, one at a time.
func (p *pass) scaleDown() {
	if len(p.st.InstanceNames) <= int(p.c.Spec.Instances) || p.pending() != nil || !p.primaryWritable() {
		return
	}
	for n, name := range slices.Backward(p.st.InstanceNames) {
		if name != p.st.CurrentPrimary {
			p.st.InstanceNames = slices.Delete(slices.Clone(p.st.InstanceNames), n, n+1)
			return
		}
	}
}

// scaleUp names the next instance once all others have their data and the one before is Ready: each is cloned
// from the primary in turn. A number is never given twice.
func (p *pass) scaleUp() {
	if len(p.st.InstanceNames) >= int(p.c.Spec.Instances) || p.pending() != nil || !p.primaryWritable() {
		return
	}
	if p.s.SpecProblem != "" || p.s.NotReadyYet != "" {
		return
	}
	for n, name := range p.st.InstanceNames {
		// One that once was well and has failed since does not keep another from being made, unless it is the
		// last: that a second would fail like it is too likely.
		i := p.s.instance(name)
		if last := n == len(p.st.InstanceNames)-1; last && (i == nil || i.Pod == nil || !i.Pod.Ready) {
			return
		}
		if _, seen := p.st.GTIDExecutedByInstance[name]; !seen || i != nil && i.Report != nil && i.Report.Provision != nil {
			return
		}
	}
	p.st.LatestGeneratedNode++
	p.st.InstanceNames = append(slices.Clone(p.st.InstanceNames), p.c.InstanceName(p.st.LatestGeneratedNode))
}

func (p *pass) primaryWritable() bool {
	return p.primary().writable(p.st.CurrentPrimaryGeneration)
}

// ensure makes what an instance lacks.
func (p *pass) ensure(name string) {
	i := p.s.instance(name)
	if i == nil {
		ordinal, _ := p.c.InstanceOrdinal(name)
		i = &Instance{Name: name, Ordinal: ordinal, MissingVolumes: []string{name}}
	}
	if i.Pod != nil {
		p.replace(i)
		if i.going() || i.Pod.Running || i.Pod.Ended != "" || len(i.MissingVolumes) == 0 {
			return
		}
	}
	if p.s.SpecProblem != "" || p.s.NotReadyYet != "" {
		return
	}
	for _, v := range i.Volumes {
		if v.Terminating {
			return
		}
	}
	if len(i.MissingVolumes) > 0 {
		// An empty volume for the primary of an established Cluster would be an empty primary.
		if name == p.st.CurrentPrimary {
			return
		}
		p.act(Action{Kind: CreateVolumes, Instance: name, Why: "the instance has no volume"})
	}
	if !i.CertificateReady || i.Pod != nil {
		return
	}
	p.act(Action{Kind: CreatePod, Instance: name, Why: "the instance has no Pod",
		Done: done(api.EventInstanceCreated, "the Pod %s is created", name)})
}

// replace deletes a Pod that cannot come to anything: one that has ended, or one that does not run and was
// made from another specification than the present one.
func (p *pass) replace(i *Instance) {
	if i.going() || p.disrupted {
		return
	}
	switch {
	case i.Pod.Ended != "":
		p.act(Action{Kind: DeletePod, Instance: i.Name, PodUID: i.Pod.UID, Why: "it is " + i.Pod.Ended,
			Done: done(api.EventInstanceReplaced, "the Pod %s has ended (%s) and is made again", i.Name, i.Pod.Ended)})
	case i.Pod.Outdated && !i.Pod.Running && p.s.SpecProblem == "":
		p.act(Action{Kind: DeletePod, Instance: i.Name, PodUID: i.Pod.UID, Why: "it does not run and the specification has changed",
			Done: done(api.EventInstanceReplaced, "the Pod %s does not run and is made again from the present specification", i.Name)})
	}
}
