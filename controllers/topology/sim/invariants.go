package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
)

// Violation is an invariant that did not hold, and where.
type Violation struct {
	// Invariant is its name, I1 to I7, or F1 and F2 for those of fencing.
	Invariant string
	At        time.Duration
	Text      string
}

func (v *Violation) String() string {
	return fmt.Sprintf("%s violated at %s: %s", v.Invariant, clock(v.At), v.Text)
}

// violate ends the run.
func (w *World) violate(invariant, format string, args ...any) {
	if w.violation == nil {
		w.violation = &Violation{Invariant: invariant, At: w.t, Text: fmt.Sprintf(format, args...)}
		w.say("VIOLATION", "%s: %s", invariant, w.violation.Text)
	}
}

// check looks at what must hold after every event.
//
// I1: no two instances accept writes, and none does but the current primary. A machine that has just gone on
// after a pause has the few milliseconds in which its watchdog wakes.
func (w *World) check() {
	writer := -1
	for n, i := range w.inst {
		if !i.srv.accepting() || w.waking(n) {
			continue
		}
		if writer >= 0 {
			w.violate("I1", "%s and %s accept writes at the same time", name(writer), name(n))
			return
		}
		writer = n
	}
	if writer >= 0 && w.api.cluster.c.Status.CurrentPrimary != name(writer) {
		w.violate("I1", "%s accepts writes while %s is the current primary in generation %d", name(writer), w.api.cluster.c.Status.CurrentPrimary, w.api.cluster.c.Status.CurrentPrimaryGeneration)
	}
}

// leaseWritten looks at each write of the Lease.
//
// I1: the lease goes to nobody while the server of its last holder accepts writes.
func (w *World) leaseWritten(before, after *leaseObject) {
	if before.holder == after.holder {
		return
	}
	w.say("lease", "is now held by %q", after.holder)
	n := ordinal(api.HolderInstance(before.holder))
	if n < 0 || n == ordinal(api.HolderInstance(after.holder)) {
		return
	}
	if w.inst[n].srv.accepting() && !w.waking(n) {
		w.violate("I1", "%s lost the lease to %q and accepts writes", name(n), after.holder)
	}
}

// acknowledged is a client that was told that its transaction is stored.
//
// I2, first half: what is acknowledged is held by the current primary.
func (w *World) acknowledged(n int, id txn) {
	w.say(name(n), "transaction %d is acknowledged", id)
	primary := ordinal(w.api.cluster.c.Status.CurrentPrimary)
	if primary == n {
		w.led.lastAck = w.t
	}
	if w.cfg.SemiSync == 0 {
		return
	}
	w.led.acked.add(id)
	if held := w.inst[primary].srv.contents(); primary != n && !held.has(id) {
		w.violate("I2", "%s acknowledged transaction %d to a client, and the current primary %s does not hold it", name(n), id, name(primary))
	}
}

// logged is a transaction that a server wrote to its binary log.
func (w *World) logged(n int, id txn) {
	if w.api.cluster.c.Status.CurrentPrimary == name(n) {
		w.led.lineage.add(id)
	}
}

// clusterWritten looks at each write of the Cluster's status.
//
// I3: the generation grows by one with each promotion and never otherwise, and a promotion is what a transition in
// the status asks for.
// F1: no fenced instance takes the role.
// I2: a promoted instance holds everything that was acknowledged.
// I4: a promoted instance holds nothing that the primary before it did not have.
func (w *World) clusterWritten(before, after *api.Cluster, who string) {
	a, b := &before.Status, &after.Status
	if a.CurrentPrimary == b.CurrentPrimary && a.CurrentPrimaryGeneration == b.CurrentPrimaryGeneration {
		return
	}
	w.say(who, "writes: %s is the primary in generation %d", b.CurrentPrimary, b.CurrentPrimaryGeneration)
	if b.CurrentPrimaryGeneration != a.CurrentPrimaryGeneration+1 {
		w.violate("I3", "the generation went from %d to %d when %s took the role from %s", a.CurrentPrimaryGeneration, b.CurrentPrimaryGeneration, b.CurrentPrimary, a.CurrentPrimary)
		return
	}
	if who != b.CurrentPrimary {
		w.violate("I3", "%s wrote that %s is the primary", who, b.CurrentPrimary)
		return
	}
	if t := a.PrimaryTransition; t == nil || t.To != who || t.Generation != b.CurrentPrimaryGeneration {
		w.violate("I3", "%s took the role in generation %d, which no transition in the status gave to it", who, b.CurrentPrimaryGeneration)
		return
	}
	if slices.Contains(a.FencedInstances, who) {
		w.violate("F1", "%s took the role in generation %d while it was fenced", who, b.CurrentPrimaryGeneration)
	}
	n := ordinal(b.CurrentPrimary)
	held := w.inst[n].srv.contents()
	if w.cfg.SemiSync > 0 && w.warned(b) {
		// It went on without witnesses and said so.
		w.led.acked = w.led.acked.and(&held)
	}
	if w.cfg.SemiSync > 0 {
		if lost := w.led.acked.minus(&held); !lost.empty() {
			w.violate("I2", "%s was promoted in generation %d without %d acknowledged transactions: %v", name(n), b.CurrentPrimaryGeneration, lost.count(), lost.list())
		}
	}
	if errant := held.minus(&w.led.lineage); !errant.empty() {
		w.violate("I4", "%s was promoted in generation %d with transactions that the primary before it never had: %v", name(n), b.CurrentPrimaryGeneration, errant.list())
	}
	w.led.lineage = held
}

// decided looks at each decision whose actions follow.
//
// F2: the Pod of a fenced instance is left in place.
func (w *World) decided(d core.Decision) {
	for _, a := range d.Actions {
		if a.Kind == core.DeletePod && slices.Contains(d.Status.FencedInstances, a.Instance) {
			w.violate("F2", "the operator deletes the Pod of %s, which is fenced: %s", a.Instance, a.Why)
		}
	}
}

// opened is a server that is opened for writes.
//
// I2, for one that resumes: it holds everything that was acknowledged.
func (w *World) opened(n int) {
	w.say(name(n), "is opened for writes")
	st := &w.api.cluster.c.Status
	if st.CurrentPrimary == name(n) {
		w.led.openedIn[n] = st.CurrentPrimaryGeneration
	}
	held := w.inst[n].srv.contents()
	if lost := w.led.acked.minus(&held); w.cfg.SemiSync > 0 && !lost.empty() {
		w.violate("I2", "%s opened for writes without %d acknowledged transactions: %v", name(n), lost.count(), lost.list())
	}
}

// attachedTo is a replica that has connected to its source.
//
// I4: what is attached to the current primary holds nothing that it never had.
func (w *World) attachedTo(s *server) {
	source := w.inst[s.source].srv
	w.say(name(s.n), "replicates from %s", name(s.source))
	if w.api.cluster.c.Status.CurrentPrimary != name(s.source) {
		return
	}
	held := s.contents()
	if errant := held.minus(&source.ever); !errant.empty() {
		w.violate("I4", "%s is attached to %s and holds transactions that it never had: %v", name(s.n), name(s.source), errant.list())
	}
}

// podWritten looks at each write of a Pod.
//
// I5: the primary's label is given to nobody but the current primary that has opened in this generation, and
// no two Pods carry it.
func (w *World) podWritten(n int, before, after *podObject) {
	if after == nil || before != nil && before.uid == after.uid && before.role == after.role {
		return
	}
	if after.role != "" || before != nil && before.uid == after.uid {
		w.say(name(n), "now has the role label %q", after.role)
	}
	if after.role != api.RolePrimary {
		return
	}
	st := &w.api.cluster.c.Status
	for _, p := range w.api.pods {
		if p != nil && p.instance != n && p.role == api.RolePrimary {
			w.violate("I5", "%s and %s carry the primary's label", name(p.instance), name(n))
		}
	}
	switch {
	case st.CurrentPrimary != name(n):
		w.violate("I5", "%s is given the primary's label while %s is the current primary", name(n), st.CurrentPrimary)
	case w.led.openedIn[n] != st.CurrentPrimaryGeneration:
		w.violate("I5", "%s is given the primary's label and was never writable in generation %d", name(n), st.CurrentPrimaryGeneration)
	}
}

// warned tells that the election of the transition that has just been completed says what may be lost.
func (w *World) warned(st *api.ClusterStatus) bool {
	t := st.PrimaryTransition
	return w.cfg.Preferred && t != nil && t.Kind == api.TransitionFailover && st.LastElection != nil &&
		strings.Contains(st.LastElection.Verdict, "an acknowledged commit may exist only there")
}

func (c *content) list() []txn {
	var all []txn
	for t := range maxTxns {
		if c.has(txn(t)) { // #nosec G115 -- below 256
			all = append(all, txn(t)) // #nosec G115 -- below 256
		}
	}
	return all
}

// lacks says what of progress is missing, after all faults have been repaired; empty when nothing is.
//
// I7: with everything in order again, a writable primary that clients are led to comes in bounded time, and
// says so if it waits for a person.
func (w *World) lacks() string {
	st := &w.api.cluster.c.Status
	n := ordinal(st.CurrentPrimary)
	s := w.inst[n].srv
	pod := w.api.pods[n]
	switch {
	case !s.accepting():
		return name(n) + " is the current primary and not writable"
	case pod == nil || pod.role != api.RolePrimary || !pod.routable:
		return name(n) + " is writable and its Pod does not carry the primary's label"
	case st.PrimaryTransition != nil && st.PrimaryTransition.Generation == st.CurrentPrimaryGeneration+1:
		return "a transition to " + st.PrimaryTransition.To + " is pending"
	case w.led.lastAck < w.healedAt && w.clean(n) >= w.cfg.SemiSync:
		return "no transaction was acknowledged although enough replicas could"
	}
	for i, p := range w.api.pods {
		if p != nil && i != n && p.role == api.RolePrimary {
			return name(i) + " carries the primary's label"
		}
	}
	return ""
}

// lost counts the machines that do not come back.
func (w *World) lost() int {
	n := 0
	for i := range w.inst {
		if w.nodes[i].lost {
			n++
		}
	}
	return n
}

// clean counts the replicas that hold nothing errant.
func (w *World) clean(primary int) int {
	n := 0
	for i := range w.inst {
		held := w.inst[i].srv.contents()
		if errant := held.minus(&w.led.lineage); i != primary && errant.empty() && !w.nodes[i].lost {
			n++
		}
	}
	return n
}

// excused tells that nobody may be promoted and nobody may resume, so that a person has to decide: every
// instance that is left lacks something that was acknowledged or holds something that no primary had; or the
// primary is lost together with as many others as acknowledge a commit, and durability is required.
func (w *World) excused() bool {
	if w.nodes[w.primaryNow()].lost && w.cfg.SemiSync > 0 && !w.cfg.Preferred && w.lost() > w.cfg.SemiSync {
		return true
	}
	for n, i := range w.inst {
		if w.nodes[n].lost {
			continue
		}
		held := i.srv.contents()
		lost, errant := w.led.acked.minus(&held), held.minus(&w.led.lineage)
		if errant.empty() && (lost.empty() || w.cfg.SemiSync == 0) {
			return false
		}
	}
	return true
}
