package core

import (
	"fmt"
	"strings"

	api "cnmsql.co/operator/api/v1alpha1"
)

// statusLost refuses to begin anew where volumes or a lease tell that there was something before. Where the data are
// there, they may show who is the primary.
func (p *pass) statusLost() bool {
	if p.st.CurrentPrimary != "" || p.pending() != nil {
		return false
	}
	if p.restore() {
		return true
	}
	if p.c.Established() {
		p.block(api.ReasonBootstrapRefused, "the status names no primary although the Cluster once had one (generation %d); restore status.currentPrimary, or delete the Cluster and make it again from a backup", p.st.CurrentPrimaryGeneration)
		return true
	}
	var found []string
	for _, i := range p.s.Instances {
		for _, v := range i.Volumes {
			found = append(found, v.Name)
		}
	}
	if p.s.Lease.Known && p.s.Lease.Holder != "" {
		p.block(api.ReasonBootstrapRefused, "the Lease %s is held by %s although the status names no primary; delete the Lease if that instance is gone for good", p.c.LeaseName(), p.s.Lease.Holder)
		return true
	}
	if len(found) > 0 {
		p.block(api.ReasonBootstrapRefused, "volume claims of an earlier Cluster of this name exist (%s); delete them if their data is not needed, or choose another name", strings.Join(found, ", "))
		return true
	}
	return false
}

// noPrimaryYet names the first instance once everything that it needs is there.
func (p *pass) noPrimaryYet() bool {
	if p.st.CurrentPrimary != "" || p.pending() != nil {
		return false
	}
	if p.st.LatestGeneratedNode == 0 {
		p.st.LatestGeneratedNode = 1
		p.st.InstanceNames = []string{p.c.InstanceName(1)}
	}
	first := p.c.InstanceName(1)
	switch {
	case p.s.SpecProblem != "":
		p.outcome(api.PhaseBlocked, api.ReasonInvalid, "the specification cannot be carried out: %s", p.s.SpecProblem)
		return true
	case p.s.NotReadyYet != "":
		p.outcome(api.PhaseProvisioning, api.ReasonProvisioning, "waiting for %s", p.s.NotReadyYet)
		return true
	}
	p.start(api.TransitionBootstrap, api.CauseBootstrap, first, "first primary")
	p.outcome(api.PhaseProvisioning, api.ReasonProvisioning, "%s is being created", first)
	return true
}

// bootstrapRunning waits for the first primary.
func (p *pass) bootstrapRunning() bool {
	t := p.pending()
	if t == nil || t.Kind != api.TransitionBootstrap {
		return false
	}
	i := p.s.instance(t.To)
	if i == nil || i.Pod == nil {
		switch {
		case p.s.SpecProblem != "":
			p.outcome(api.PhaseBlocked, api.ReasonInvalid, "the specification cannot be carried out: %s", p.s.SpecProblem)
			return true
		case p.s.NotReadyYet != "":
			p.outcome(api.PhaseProvisioning, api.ReasonProvisioning, "waiting for %s", p.s.NotReadyYet)
			return true
		}
	}
	if why, reason := trouble(i); why != "" {
		p.outcome(api.PhaseProvisioning, reason, "%s", why)
		return true
	}
	p.outcome(api.PhaseProvisioning, api.ReasonProvisioning, "%s", progress(t.To, i))
	return true
}

// progress is how far the making of an instance is, in words.
func progress(name string, i *Instance) string {
	switch {
	case i == nil || i.Pod == nil:
		return name + " is being created"
	case i.Report == nil:
		return name + " is starting"
	case i.Report.Provision != nil:
		pr := i.Report.Provision
		if pr.Step == "cloning" && pr.Percent > 0 {
			return fmt.Sprintf("%s is being cloned (%d %%)", name, pr.Percent/10*10)
		}
		return name + " is " + pr.Step
	case i.Report.MySQL == nil:
		return name + " is starting its server"
	}
	return name + " is taking its role"
}
