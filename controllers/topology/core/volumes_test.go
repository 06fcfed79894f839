package core

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// room sets what is left of the data volumes of instances.
func (w *world) room(available uint64, ordinals ...int) *world {
	for _, n := range ordinals {
		w.i(n).Report.Volumes = []protocol.Volume{{Name: protocol.VolumeData, SizeBytes: 1 << 30, AvailableBytes: available, Full: available == 0}}
	}
	return w
}

func TestAPrimaryOnAFullVolumeIsReplacedByAReplicaWithRoom(t *testing.T) {
	w := sound().room(0, 1).room(1<<29, 2, 3)
	d := Decide(w.Snapshot)
	does(t, d)
	says(t, d, "Degraded: the primary c1-1 cannot write: its data volume is full")
	says(t, d, "VolumeNotWritable: the primary c1-1 cannot write: its data volume is full")
	if c := condition(d, api.ConditionReady); c.Reason != api.ReasonVolumeNotWritable || d.Recheck != api.PrimaryLeaseTTL {
		t.Errorf("reason %s, recheck %s", c.Reason, d.Recheck)
	}

	w.then(d)
	w.Now = w.Now.Add(api.PrimaryLeaseTTL)
	d = Decide(w.Snapshot)
	// Nothing can be handed over: its manager ends the server, and the lease is free.
	does(t, d, "delete Pod c1-1")
	if d.Rule != "the primary has failed" {
		t.Errorf("rule %s", d.Rule)
	}

	w.then(d).crash(1).free()
	if tr := Decide(w.Snapshot).Status.PrimaryTransition; tr == nil || tr.To != "c1-2" {
		t.Errorf("transition %+v", tr)
	}
}

func TestAPrimaryThatFindsRoomAgainIsHealthy(t *testing.T) {
	w := sound().room(0, 1)
	w.then(Decide(w.Snapshot))
	w.Now = w.Now.Add(10 * time.Second)
	d := Decide(w.room(1<<29, 1).Snapshot)
	if d.Status.PrimaryFailingSince != nil || d.Status.Phase != api.PhaseReady {
		t.Errorf("failing since %s, phase %s", d.Status.PrimaryFailingSince, d.Status.Phase)
	}
}

func TestAPrimaryOnAFullVolumeIsKeptWhereNobodyHasRoom(t *testing.T) {
	w := sound().room(0, 1, 2, 3)
	w.Cluster.Status.PrimaryFailingSince = new(metav1.NewMicroTime(now.Add(-time.Hour)))
	d := Decide(w.Snapshot)
	does(t, d)
	says(t, d, "its data volume is full, and nobody can take over")
	w.Cluster.Status.TargetPrimary = "c1-2"
	says(t, Decide(w.Snapshot), "SwitchoverRefused: c1-2 cannot become the primary: its data volume is full")
}

func TestASwitchoverAwayFromAFullVolumeIsNotKeptBack(t *testing.T) {
	w := sound().room(0, 1)
	w.Cluster.Status.TargetPrimary = "c1-3"
	if tr := Decide(w.Snapshot).Status.PrimaryTransition; tr == nil || tr.To != "c1-3" {
		t.Errorf("transition %+v", tr)
	}
}

func TestAReplicaOnAFullVolumeIsNoCandidateAndIsTold(t *testing.T) {
	d := Decide(sound().room(0, 2).Snapshot)
	says(t, d, "Degraded: c1-2 cannot write: its data volume is full")

	w := deadPrimary().room(0, 2)
	w.i(3).Report.Volumes = []protocol.Volume{{Name: protocol.VolumeBinlog, AvailableBytes: 1 << 30}}
	tr := Decide(w.Snapshot).Status.PrimaryTransition
	if tr == nil || tr.To != "c1-3" {
		t.Errorf("transition %+v", tr)
	}
	// What it alone holds may have been acknowledged.
	w = deadPrimary().room(0, 2).held(2, "1:1-100", "1:90-105")
	d = Decide(w.Snapshot)
	if d.Status.PrimaryTransition != nil {
		t.Fatalf("transition %+v", d.Status.PrimaryTransition)
	}
	says(t, d, "c1-2 holds transactions that c1-3 does not")
	if slices.ContainsFunc(d.Status.LastElection.Candidates, func(c api.Candidate) bool { return c.Instance == "c1-2" && c.Eligible }) {
		t.Error("c1-2 is eligible")
	}
}

// It still serves reads: to end it for a failover that cannot be would leave nothing, again and again.
func TestAPrimaryOnAFullVolumeIsKeptWhereNobodyWouldTakeOver(t *testing.T) {
	for _, tc := range []struct {
		name  string
		world func() *world
		says  string
	}{
		{"the brake holds", func() *world { return sound().braked(10*time.Minute, 0).remember(time.Minute, 3) }, "a failover is held back until"},
		{"a witness is missing", func() *world { return sound().acknowledged(1, api.DurabilityRequired).silence(3) }, "an acknowledged commit may exist only on"},
		{"a replica that is full holds more than one that is not", func() *world {
			return sound().held(1, "1:1-105", "").held(2, "1:1-105", "1:90-105").room(0, 2)
		}, "nobody can take over: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := tc.world().room(0, 1)
			w.Cluster.Status.PrimaryFailingSince = new(metav1.NewMicroTime(now.Add(-time.Hour)))
			d := Decide(w.Snapshot)
			if slices.Contains(actions(d), "delete Pod c1-1") || d.Rule != "the primary has no room to write" {
				t.Errorf("%s: %q", d.Rule, actions(d))
			}
			says(t, d, tc.says)
		})
	}
}

func TestASwitchoverThatAFullVolumeKeepsFromEndingBecomesAFailover(t *testing.T) {
	w := moving().room(0, 1)
	w.Cluster.Status.PrimaryTransition.StartedAt = metav1.NewMicroTime(now.Add(-api.PrimaryLeaseTTL))
	w.Cluster.Status.PrimaryFailingSince = new(metav1.NewMicroTime(now.Add(-time.Minute)))
	d := Decide(w.Snapshot)
	does(t, d, "delete Pod c1-1")
	says(t, d, "its data volume is full, so that it cannot hand over")
}

func TestALossMayBeAcceptedForAPrimaryThatCannotWrite(t *testing.T) {
	w := sound().room(0, 1, 2, 3)
	w.Cluster.Status.PrimaryFailingSince = new(metav1.NewMicroTime(now.Add(-time.Hour)))
	w.Cluster.Annotations = map[string]string{api.AnnotationAcceptLoss: "c1-2="}
	d := Decide(w.Snapshot)
	does(t, d, "delete Pod c1-1")
	if d.Rule != "a loss was accepted" {
		t.Errorf("rule %s", d.Rule)
	}
}
