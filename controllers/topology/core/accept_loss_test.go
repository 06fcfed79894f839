package core

import (
	"strings"
	"testing"

	api "cnmsql.co/operator/api/v1alpha1"
)

// torn is a Cluster whose primary is dead and whose replicas each hold what the other does not.
func torn() *world { return deadPrimary().held(2, "1:1-100, 2:1", "").held(3, "1:1-100, 3:1", "") }

func (w *world) accepting(instance, loss string) *world {
	return w.with(api.AnnotationAcceptLoss, instance+"="+set(loss).String())
}

func TestAnAcceptedLossBecomesATransition(t *testing.T) {
	w := torn().accepting("c1-2", "3:1")
	d := Decide(w.Snapshot)
	tr := d.Status.PrimaryTransition
	if tr == nil || tr.To != "c1-2" || tr.Kind != api.TransitionFailover || tr.Cause != api.CauseAcceptedLoss || tr.Generation != 4 {
		t.Fatalf("transition %+v: %s", tr, d.Status.PhaseReason)
	}
	if got := d.Status.DivergedInstances; len(got) != 1 || got[0] != "c1-3" {
		t.Errorf("diverged %v: the chosen one is the truth, and who holds more keeps its data aside", got)
	}
	says(t, d, "LossAccepted: c1-2 is promoted as was asked for")
	w.then(d)
	if _, there := w.Cluster.Annotations[api.AnnotationAcceptLoss]; there {
		t.Error("the annotation stays, and would be followed again")
	}
	w.claimed().opened().held(2, "1:1-100, 2:1-9", "")
	d = Decide(w.Snapshot)
	if d.Status.LastFailoverTimestamp != nil {
		t.Error("the brake counts what a person asked for")
	}
	if got := d.Status.DivergedInstances; len(got) != 1 || got[0] != "c1-3" {
		t.Errorf("diverged %v", got)
	}
}

func TestAnAcceptedLossIsRefusedWithTheReasonAndTheAnnotationRemoved(t *testing.T) {
	for _, tc := range []struct {
		name  string
		world *world
		says  string
	}{
		{"more would be lost", torn().accepting("c1-2", ""), "more than was accepted would be lost: " + set("3:1").String()},
		{"another loss was stated", torn().accepting("c1-2", "3:2-9"), "all that would be lost is " + set("3:1").String()},
		{"what the primary was known to have counts", torn().held(2, "1:1-90", "").held(3, "1:1-80", "").accepting("c1-2", "1:91-99"), set("1:100").String()},
		{"no instance", torn().accepting("c1-9", "3:1"), `there is no instance "c1-9"`},
		{"no set", torn().with(api.AnnotationAcceptLoss, "c1-2"), "<instance>=<GTID set>"},
		{"no readable set", torn().with(api.AnnotationAcceptLoss, "c1-2=everything"), "is not followed"},
		{"it does not answer", torn().silence(2).accepting("c1-2", "3:1"), "c1-2 does not answer"},
		{"its applier is broken", func() *world {
			w := torn().accepting("c1-2", "3:1")
			w.i(2).Report.MySQL.Replication.SQLErrno = 1062
			return w
		}(), "error 1062"},
		{"the primary may not have asked it", func() *world {
			w := torn().accepting("c1-2", "3:1")
			w.Cluster.Status.PrimaryKnows = []string{"c1-1", "c1-3"}
			w.Lease.Holder, w.Lease.Unchanged = "c1-1/lost", api.PrimaryLeaseTTL
			return w
		}(), "was made after the primary was last heard"},
		{"the primary is well", sound().accepting("c1-2", ""), "the primary is writable"},
		{"its numbers would be given out again", deadPrimary().held(3, "1:1-100, 2:1-3, 3:1", "").accepting("c1-2", "2:1-3, 3:1"), "a second time; name c1-3"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.world.Snapshot)
			says(t, d, "AcceptLossRefused: ")
			says(t, d, tc.says)
			if tr := d.Status.PrimaryTransition; tr != nil && tr.Cause == api.CauseAcceptedLoss {
				t.Errorf("transition %+v", tr)
			}
			if got := strings.Join(actions(d), "; "); !strings.Contains(got, "clear accept-loss") {
				t.Errorf("actions %q", got)
			}
		})
	}
}

func TestAnAcceptedLossWaitsUntilTheOldPrimaryCannotWrite(t *testing.T) {
	for name, tc := range map[string]struct {
		world *world
		says  string
	}{
		"its lease is held":             {sound().lose(1).accepting("c1-2", ""), "waiting until the lease of c1-1/pod-1"},
		"it is silent and may be alive": {sound().silence(1).accepting("c1-2", ""), "its manager does not answer, but its Pod is Ready"},
	} {
		d := Decide(tc.world.Snapshot)
		if d.Status.PrimaryTransition != nil {
			t.Errorf("%s: transition %+v", name, d.Status.PrimaryTransition)
		}
		says(t, d, tc.says)
		if got := strings.Join(actions(d), "; "); strings.Contains(got, "accept-loss") {
			t.Errorf("%s: actions %q", name, got)
		}
	}
	w := torn().accepting("c1-2", "3:1")
	w.Fresh = false
	if d := Decide(w.Snapshot); !d.Refresh {
		t.Error("it decides on old facts")
	}
}

func TestALossCanBeAcceptedByTheFormerPrimaryItself(t *testing.T) {
	// It refuses to resume, because the set recorded at its promotion is not there any more.
	refusing := func() *world {
		w := sound().held(1, "1:1-40", "").held(2, "1:1-30, 2:1", "").free()
		w.i(3).Report.MySQL.Executed, w.i(3).Report.MySQL.Replication.Received = set("1:1-30"), set("")
		w.i(1).Report.MySQL.ReadOnly, w.i(1).Report.MySQL.SuperReadOnly = true, true
		w.i(1).Report.Role.ResumeRefused = "it lost transactions"
		w.Lease.Holder = ""
		return w
	}
	if d := Decide(refusing().Snapshot); d.Status.PrimaryTransition != nil {
		t.Fatalf("transition %+v", d.Status.PrimaryTransition)
	}
	d := Decide(refusing().accepting("c1-1", "1:41-100, 2:1").Snapshot)
	tr := d.Status.PrimaryTransition
	if tr == nil || tr.To != "c1-1" || tr.From != "c1-1" || tr.Generation != 4 {
		t.Fatalf("transition %+v: %s", tr, d.Status.PhaseReason)
	}
}

func TestAFormerPrimaryThatIsGivenUpWithItsTransactionsStaysMarked(t *testing.T) {
	w := sound().held(1, "1:1-110", "").free()
	w.i(1).Report.MySQL.ReadOnly, w.i(1).Report.MySQL.SuperReadOnly = true, true
	w.i(1).Report.Role.ResumeRefused = "it does not want to"
	w.Lease.Holder = ""
	w.accepting("c1-2", "1:101-110")
	w.then(Decide(w.Snapshot))
	for range 3 {
		d := Decide(w.Snapshot)
		if got := d.Status.DivergedInstances; len(got) != 1 || got[0] != "c1-1" || d.Status.PrimaryTransition == nil {
			t.Fatalf("diverged %v, transition %+v", got, d.Status.PrimaryTransition)
		}
		w.then(d)
	}
	w.claimed().opened()
	if got := Decide(w.Snapshot).Status.DivergedInstances; len(got) != 1 || got[0] != "c1-1" {
		t.Errorf("after the promotion: diverged %v", got)
	}
}
