package core

import (
	"slices"
	"testing"
)

func TestWhoHoldsWhatThePrimaryDoesNotIsMarkedWhetherItReplicatesOrNot(t *testing.T) {
	// c1-2 has the role since a moment; c1-1 had it before.
	former := func() *world {
		w := moving().stepDown("1:1-100").claimed().opened().held(2, "1:1-100, 2:1-50, 3:1-7", "").held(3, "1:1-100, 2:1-50, 3:1-7", "")
		w.i(1).Report.MySQL.Replication = nil
		return w
	}
	for _, tc := range []struct {
		name   string
		change func(*world)
		marked []string
	}{
		{"a former primary with nothing of its own", func(w *world) { w.held(1, "1:1-100", "") }, nil},
		{"a former primary that committed on, and does not replicate", func(w *world) { w.held(1, "1:1-103", "") }, []string{"c1-1"}},
		{"what the primary holds of earlier primaries is nobody's fault", func(w *world) { w.held(1, "1:1-90, 3:1-7", "") }, nil},
		{"a replica that was read after the primary", func(w *world) { w.held(3, "1:1-100, 2:1-60, 3:1-7", "") }, nil},
		{"a replica of the wrong source with its own writes", func(w *world) {
			w.held(3, "1:1-100, 2:1-50, 3:1-8", "").i(3).Report.MySQL.Replication.SourceHost = "c1-1.shop.svc"
		}, []string{"c1-3"}},
		{"what was received and not applied counts", func(w *world) { w.held(3, "1:1-100, 2:1-50, 3:1-7", "1:101") }, []string{"c1-3"}},
		{"a replica that lacks much", func(w *world) { w.held(3, "1:1-80", "") }, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := former()
			w.held(1, "1:1-100", "")
			tc.change(w)
			d := Decide(w.Snapshot)
			if !slices.Equal(d.Status.DivergedInstances, tc.marked) {
				t.Fatalf("marked %v, want %v", d.Status.DivergedInstances, tc.marked)
			}
			w.then(d)
			// While nobody can disprove it, the mark stays.
			w.silence(2)
			if got := Decide(w.Snapshot).Status.DivergedInstances; !slices.Equal(got, tc.marked) {
				t.Errorf("without a primary: %v", got)
			}
		})
	}
}

func TestAMarkedInstanceIsNotElectedWhenThePrimaryIsGone(t *testing.T) {
	w := sound().held(2, "1:1-100, 2:1-3", "")
	w.then(Decide(w.Snapshot))
	w.crash(1).free()
	d := Decide(w.Snapshot)
	if tr := d.Status.PrimaryTransition; tr == nil || tr.To != "c1-3" || !slices.Equal(d.Status.DivergedInstances, []string{"c1-2"}) {
		t.Errorf("transition %+v, marked %v", tr, d.Status.DivergedInstances)
	}
	w.silence(3)
	says(t, Decide(w.Snapshot), "c1-2 holds transactions that the primary did not have")
}
