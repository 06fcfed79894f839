package core

import (
	"slices"

	api "cnmsql.co/operator/api/v1alpha1"
)

// routing keeps the role labels in step with what the instances report. Labels are taken away before one
// is given, so that at no moment two Pods carry the primary's.
func (p *pass) routing() {
	var take, give []Action
	for _, i := range p.s.Instances {
		if i.Pod == nil {
			continue
		}
		role, routable := p.place(&i)
		if role == i.Pod.Role && routable == i.Pod.Routable {
			continue
		}
		a := Action{Kind: LabelPod, Instance: i.Name, PodUID: i.Pod.UID, Role: role, Routable: routable, Why: "its role is " + orNone(role)}
		if role == api.RolePrimary {
			give = append(give, a)
		} else {
			take = append(take, a)
		}
	}
	labels := slices.Concat(take, give)
	if len(give) > 0 && p.storedPrimary() {
		// Clients wait for it.
		p.d.First = labels
		return
	}
	// Before all others, so that nothing that fails keeps clients from the right server.
	p.d.Actions = slices.Concat(labels, p.d.Actions)
}

// storedPrimary tells that the primary of this decision is the one in the status as it was read.
func (p *pass) storedPrimary() bool {
	read := &p.c.Status
	if pending(read) != nil {
		// Its target may claim the role before a decision that ends it is stored.
		return false
	}
	return p.pending() == nil && read.CurrentPrimary == p.st.CurrentPrimary && read.CurrentPrimaryGeneration == p.st.CurrentPrimaryGeneration
}

// place is the role and routability that an instance should show.
func (p *pass) place(i *Instance) (role string, routable bool) {
	switch {
	case i.Name == p.st.CurrentPrimary:
		return p.placePrimary(i)
	case p.diverged(i.Name) || p.fenced(i.Name) || i.going() || !p.isMember(i.Name):
		return api.RoleReplica, false
	case i.Report == nil:
		// What is not the primary never keeps the primary's label.
		if i.Pod.Role == api.RolePrimary {
			return "", false
		}
		return i.Pod.Role, i.Pod.Routable
	case !i.joined() || i.Pod.Role == "" && i.source() == "":
		return "", false
	case i.Report.MySQL.Writable():
		return "", false
	}
	return api.RoleReplica, i.running() && i.source() != "" && !i.Report.MySQL.Offline
}

func (p *pass) placePrimary(i *Instance) (role string, routable bool) {
	switch {
	case p.pending() != nil || p.fenced(i.Name) || p.unserved(i):
		return "", false
	case i.Report == nil:
		// Silence alone proves nothing: its readiness keeps clients away if it is gone.
		return i.Pod.Role, i.Pod.Routable
	case i.Pod.Role != api.RolePrimary && p.awaitsFirstReplicas(i):
		return "", false
	case i.writable(p.st.CurrentPrimaryGeneration) && !i.Report.MySQL.Offline:
		return api.RolePrimary, true
	case i.Pod.Role == api.RoleReplica && !p.diverged(i.Name) && !i.going():
		// Until it can be shown as the primary: to take it from the Services for reading first would only make
		// two changes for every node to follow where one is enough.
		return i.Pod.Role, i.Pod.Routable
	}
	return "", false
}

// awaitsFirstReplicas tells that the first primary has nobody yet who acknowledges. A commit would wait for them, and they
// for it: a server is not cloned while a transaction of it is between the binary log and its commit.
func (p *pass) awaitsFirstReplicas(i *Instance) bool {
	if p.st.EstablishedAt != nil || !p.c.SemiSyncEnabled() || i.Report == nil || i.Report.MySQL == nil {
		return false
	}
	return !i.Report.MySQL.SemiSync.CanAcknowledge()
}

// unserved tells that a silent primary is known to be gone.
func (p *pass) unserved(i *Instance) bool {
	return i.Report == nil && p.evidence(i).state == failing
}

func orNone(role string) string {
	if role == "" {
		return "none"
	}
	return role
}
