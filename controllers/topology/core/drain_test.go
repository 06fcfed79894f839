package core

import (
	"testing"

	api "cnmsql.co/operator/api/v1alpha1"
)

func TestTheRoleLeavesACordonedNode(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*world)
		to     string
		says   string
	}{
		{"a replica on another node", func(*world) {}, "c1-2", "because its node is cordoned"},
		{"only one is on another node", func(w *world) { w.i(2).Pod.Cordoned = true }, "c1-3", ""},
		{"the preferred of equals", func(w *world) { w.prefer("c1-3") }, "c1-3", ""},
		{"the primary is the preferred one", func(w *world) { w.prefer("c1-1") }, "c1-2", ""},
		{"all nodes are cordoned", func(w *world) { w.i(2).Pod.Cordoned, w.i(3).Pod.Cordoned = true, true }, "", "no replica on another node can take over"},
		{"it is switched off", func(w *world) { w.Cluster.Spec.EnableSwitchoverOnDrain = new(false) }, "", ""},
		{"nobody else is fit", func(w *world) { w.lose(2).lose(3) }, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := sound()
			w.i(1).Pod.Cordoned = true
			tc.change(w)
			d := Decide(w.Snapshot)
			tr := d.Status.PrimaryTransition
			if (tr == nil) != (tc.to == "") || tr != nil && (tr.To != tc.to || tr.Cause != api.CauseCordoned || tr.Kind != api.TransitionSwitchover) {
				t.Errorf("transition %+v: %s", tr, d.Status.PhaseReason)
			}
			says(t, d, tc.says)
		})
	}
}

func TestTheRoleDoesNotReturnToACordonedNode(t *testing.T) {
	w := sound().prefer("c1-2")
	w.i(2).Pod.Cordoned = true
	if tr := Decide(w.Snapshot).Status.PrimaryTransition; tr != nil {
		t.Errorf("transition %+v", tr)
	}
}

func TestAMoveFromACordonedNodeThatHadToBeEndedIsNotTriedAgainAtOnce(t *testing.T) {
	w := sound()
	w.i(1).Pod.Cordoned, w.i(3).Pod.Cordoned = true, true
	w.then(Decide(w.Snapshot))
	w.i(2).Report.Role.PromotionRefused, w.i(2).Report.Role.PromotionRefusedAttempt = "it cannot", w.Cluster.Status.PrimaryTransition.Attempt
	w.then(Decide(w.Snapshot))
	d := Decide(w.Snapshot)
	if d.Status.PrimaryTransition != nil || d.Status.Phase != api.PhaseReady {
		t.Errorf("transition %+v, phase %s", d.Status.PrimaryTransition, d.Status.Phase)
	}
	says(t, d, "because the last try was ended: it cannot")
	w.Now = now.Add(firstFailbackPause)
	if Decide(w.Snapshot).Status.PrimaryTransition == nil {
		t.Error("never again")
	}
}

func TestAStoppingPrimaryKeepsTheRoleIfSoConfigured(t *testing.T) {
	w := sound()
	w.i(1).Pod.Terminating = true
	w.Cluster.Spec.EnableSwitchoverOnDrain = new(false)
	if tr := Decide(w.Snapshot).Status.PrimaryTransition; tr != nil {
		t.Errorf("transition %+v", tr)
	}
}

func TestAStoppingPrimaryRatherTakesAReplicaThatStays(t *testing.T) {
	w := sound().held(3, "1:1-99", "")
	w.i(1).Pod.Terminating, w.i(2).Pod.Cordoned = true, true
	if tr := Decide(w.Snapshot).Status.PrimaryTransition; tr == nil || tr.To != "c1-3" {
		t.Errorf("transition %+v", tr)
	}
	w.lose(3)
	if tr := Decide(w.Snapshot).Status.PrimaryTransition; tr == nil || tr.To != "c1-2" {
		t.Errorf("transition %+v", tr)
	}
}
