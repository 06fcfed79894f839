package core

import (
	"fmt"
	"slices"

	api "cnmsql.co/operator/api/v1alpha1"
)

// restore finds the primary of a Cluster whose status was lost while its volumes are there. Every instance takes part
// and must answer: who is silent might be the one. False when the volumes are not all this Cluster's own.
func (p *pass) restore() bool {
	names, latest := p.inherited()
	if len(names) == 0 {
		return false
	}
	p.st.InstanceNames, p.st.LatestGeneratedNode = names, max(p.st.LatestGeneratedNode, latest)
	to, problem := p.evident(names)
	switch {
	case problem != "":
		p.block(api.ReasonBootstrapRefused, "the status names no primary although the Cluster once had one (generation %d), and the instances do not show which it is: %s", p.st.CurrentPrimaryGeneration, problem)
	case !p.s.Lease.Free():
		p.block(api.ReasonLeaseHeld, "the status names no primary; waiting until the lease is released or expired, to make %s the primary", to)
		p.recheck(p.s.Lease.Remaining())
	case !p.s.Fresh:
		p.d.Refresh = true
	default:
		p.start(api.TransitionFailover, api.CauseStatusLost, to, "the status named no primary")
		p.warn(api.EventFailoverStarted, "the status named no primary; %s is promoted, because it holds all that any instance holds", to)
		p.outcome(api.PhaseFailingOver, api.ReasonFailingOver, "%s is being promoted, because the status named no primary", to)
	}
	return true
}

// inherited are the instances that have a volume with data, by ordinal; none unless all volumes are this Cluster's.
func (p *pass) inherited() (names []string, latest int32) {
	for _, i := range p.s.Instances {
		for _, v := range i.Volumes {
			if !v.Ours || v.Terminating {
				return nil, 0
			}
			if v.Name == i.Name {
				names, latest = append(names, i.Name), max(latest, i.Ordinal)
			}
		}
	}
	return names, latest
}

// evident is the instance that must have been the primary, or could be it as well as any other: either all hold the
// same, or the Lease names it as its last holder and it holds all that any other does. Whoever merely holds more than
// the others may hold what no primary ever had.
func (p *pass) evident(names []string) (to, problem string) {
	last := api.HolderInstance(p.s.Lease.Holder)
	all, same := "", true
	for _, name := range names {
		i := p.s.instance(name)
		switch {
		case p.fenced(name) && !i.running():
			return "", name + " is fenced: end that first"
		case !i.running() || !i.joined():
			return "", name + " does not answer"
		case i.Report.MySQL.Writable():
			return "", name + " is still writable"
		case i.Report.MySQL.Replication != nil && i.Report.MySQL.Replication.SQLErrno != 0:
			return "", fmt.Sprintf("%s has an applier that stopped with error %d", name, i.Report.MySQL.Replication.SQLErrno)
		}
		same = same && i.Report.MySQL.Held().Equal(p.s.instance(names[0]).Report.MySQL.Held())
		if !p.fenced(name) && (all == "" || p.preference(name) < p.preference(all)) {
			all = name
		}
	}
	switch {
	case slices.Contains(names, last) && !p.fenced(last) && p.holdsAll(last, names):
		return last, ""
	case same && all == "":
		return "", "all are fenced"
	case same:
		return all, ""
	}
	return "", "they hold different transactions"
}

// holdsAll tells that an instance holds everything that these hold.
func (p *pass) holdsAll(name string, names []string) bool {
	held := p.s.instance(name).Report.MySQL.Held()
	return !slices.ContainsFunc(names, func(other string) bool {
		return !held.Contains(p.s.instance(other).Report.MySQL.Held())
	})
}
