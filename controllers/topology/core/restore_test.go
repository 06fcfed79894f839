package core

import (
	"testing"

	api "cnmsql.co/operator/api/v1alpha1"
)

// forgotten is a Cluster whose status was wiped and whose instances, all read-only, have their own volumes.
func forgotten() *world {
	w := sound()
	for n := range w.Instances {
		w.Instances[n].Volumes[0].Ours = true
	}
	w.Cluster.Status = api.ClusterStatus{}
	w.i(1).Report.MySQL.ReadOnly, w.i(1).Report.MySQL.SuperReadOnly = true, true
	w.Lease = Lease{Known: true}
	w.Fresh = true
	return w
}

func TestALostStatusIsFoundAgainWhereTheInstancesProveIt(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*world)
		to     string
		says   string
	}{
		{"all hold the same", func(*world) {}, "c1-1", "c1-1 is promoted"},
		{"all hold the same, one is preferred", func(w *world) { w.prefer("c1-3") }, "c1-3", ""},
		{"the last holder of the Lease holds all", func(w *world) {
			w.held(2, "1:1-101", "")
			w.Lease.Holder, w.Lease.Unchanged = "c1-2/x", api.PrimaryLeaseTTL
		}, "c1-2", ""},
		{"another holds more than the last holder", func(w *world) {
			w.held(2, "1:1-100, 2:1", "")
			w.Lease.Holder, w.Lease.Unchanged = "c1-1/x", api.PrimaryLeaseTTL
		}, "", "hold different transactions"},
		{"one holds more, and nobody knows why", func(w *world) { w.held(3, "1:1-100, 3:1", "") }, "", "hold different transactions"},
		{"what was received counts", func(w *world) { w.held(3, "1:1-90", "1:91-100") }, "c1-1", ""},
		{"one does not answer", func(w *world) { w.silence(3) }, "", "c1-3 does not answer"},
		{"one is still writable", func(w *world) { w.i(2).Report.MySQL.ReadOnly, w.i(2).Report.MySQL.SuperReadOnly = false, false }, "", "c1-2 is still writable"},
		{"the lease is held", func(w *world) { w.Lease.Holder = "c1-1/pod-1" }, "", "waiting until the lease is released"},
		{"a volume is of an earlier Cluster", func(w *world) { w.i(3).Volumes[0].Ours = false }, "", "volume claims of an earlier Cluster"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := forgotten()
			tc.change(w)
			d := Decide(w.Snapshot)
			tr := d.Status.PrimaryTransition
			if (tr == nil) != (tc.to == "") || tr != nil && (tr.To != tc.to || tr.Kind != api.TransitionFailover || tr.Generation != 1) {
				t.Errorf("transition %+v: %s", tr, d.Status.PhaseReason)
			}
			says(t, d, tc.says)
		})
	}
}

func TestOfALostStatusTheInstancesAreMadeAgainAndTheNextGenerationFollows(t *testing.T) {
	w := forgotten().lose(1).lose(2).lose(3)
	w.Cluster.Status.CurrentPrimaryGeneration = 7
	d := Decide(w.Snapshot)
	does(t, d, "create Pod c1-1", "create Pod c1-2", "create Pod c1-3")
	says(t, d, "c1-1 does not answer")
	w = forgotten()
	w.Cluster.Status.CurrentPrimaryGeneration = 7
	if tr := Decide(w.Snapshot).Status.PrimaryTransition; tr == nil || tr.Generation != 8 {
		t.Errorf("transition %+v", tr)
	}
}

func TestAPromotionAfterALostStatusThatFailsIsDecidedAnew(t *testing.T) {
	w := forgotten()
	w.then(Decide(w.Snapshot))
	w.i(1).Report.Role.PromotionRefused, w.i(1).Report.Role.PromotionRefusedAttempt = "c1-2 holds more", w.Cluster.Status.PrimaryTransition.Attempt
	d := Decide(w.Snapshot)
	if d.Status.PrimaryTransition != nil {
		t.Fatalf("transition %+v", d.Status.PrimaryTransition)
	}
	w.then(d).held(2, "1:1-101", "")
	says(t, Decide(w.Snapshot), "hold different transactions")
}

func TestAVolumeThatGoesWhileTheStatusIsLostMakesNoEmptyPrimary(t *testing.T) {
	w := forgotten().silence(3)
	w.then(Decide(w.Snapshot))
	for name, change := range map[string]func(*Volume){
		"it is being deleted": func(v *Volume) { v.Terminating = true },
		"it is another's":     func(v *Volume) { v.Ours = false },
	} {
		w.i(2).Volumes = []Volume{{Name: "c1-2", Ours: true}}
		change(&w.i(2).Volumes[0])
		d := Decide(w.Snapshot)
		if d.Status.PrimaryTransition != nil || d.Status.Phase != api.PhaseBlocked {
			t.Errorf("%s: transition %+v, phase %s", name, d.Status.PrimaryTransition, d.Status.Phase)
		}
	}
}
