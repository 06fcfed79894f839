package core

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// situations are worlds by what is the matter with them, with the rule that speaks.
var situations = []struct {
	name, rule string
	world      func() *world
	phase      api.Phase
}{
	{"all is well", "the primary is healthy", sound, api.PhaseReady},
	{"a new Cluster", "no primary yet", fresh, api.PhaseProvisioning},
	{"the first primary is being made", "the first primary is being made", bootstrapping, api.PhaseProvisioning},
	{"the status was wiped", "the status was lost", wiped, api.PhaseBlocked},
	{"the primary is fenced and its server still runs", "the primary is fenced", func() *world { return sound().fence(1) }, api.PhaseFailingOver},
	{"the primary's volume is full", "the primary has no room to write", func() *world { return sound().room(0, 1) }, api.PhaseDegraded},
	{"the primary's server is down", "the primary has failed", deadPrimary, api.PhaseFailingOver},
	{"the primary's Pod is gone", "the primary has failed", func() *world { return sound().lose(1).free() }, api.PhaseFailingOver},
	{"the primary failed a moment ago", "the primary has failed", func() *world { return sound().lose(1) }, api.PhaseFailingOver},
	{"a switchover is running", "a switchover is running", moving, api.PhaseSwitchover},
	{"the primary handed over", "a switchover is running", func() *world { return moving().stepDown("1:1-100") }, api.PhaseSwitchover},
	{"the target claimed the role", "the primary is opening", func() *world { return moving().stepDown("1:1-100").claimed() }, api.PhaseFailingOver},
	{"the target is writable", "the primary is healthy", func() *world { return moving().stepDown("1:1-100").claimed().opened() }, api.PhaseReady},
	{"a failover is running", "a failover is running", failingOver, api.PhaseFailingOver},
	{"the primary is silent and heard", "the primary cannot be reached", func() *world { w := sound(); w.i(1).Report = nil; return w }, api.PhaseDegraded},
	{"the primary's Pod is being stopped", "the primary's Pod is being stopped", func() *world { w := sound(); w.i(1).Pod.Terminating = true; return w }, api.PhaseSwitchover},
	{"a switchover is asked for", "a switchover is asked for", func() *world { w := sound(); w.Cluster.Status.TargetPrimary = "c1-3"; return w }, api.PhaseSwitchover},
	{"the primary's node is cordoned", "the primary's node is cordoned", func() *world { w := sound(); w.i(1).Pod.Cordoned = true; return w }, api.PhaseSwitchover},
	{"a preferred instance is fit", "another instance is preferred", func() *world { return sound().prefer("c1-3") }, api.PhaseSwitchover},
	{"nobody may be promoted, and a loss was accepted", "a loss was accepted", func() *world { return torn().with(api.AnnotationAcceptLoss, "c1-2="+set("3:1").String()) }, api.PhaseFailingOver},
	{"nobody may be promoted", "the primary has failed", func() *world { return deadPrimary().held(2, "1:1-99, 2:1", "").held(3, "1:1-99, 3:1", "") }, api.PhaseBlocked},
	{"a replica is lost", "the primary is healthy", func() *world { return sound().lose(3) }, api.PhaseDegraded},
	{"the only instance failed", "the primary has failed", alone, api.PhaseDegraded},
}

func fresh() *world {
	w := sound()
	w.Cluster.Status = api.ClusterStatus{}
	w.Instances, w.Lease = nil, Lease{Known: true}
	return w
}

func bootstrapping() *world {
	w := fresh()
	w.Cluster.Status = Decide(w.Snapshot).Status
	return w
}

func wiped() *world {
	w := sound()
	w.Cluster.Status = api.ClusterStatus{}
	return w
}

func failingOver() *world {
	w := deadPrimary()
	w.transition(api.TransitionFailover, "c1-2")
	return w
}

func alone() *world {
	w := sound().crash(1)
	w.Cluster.Spec.Instances = 1
	w.Cluster.Status.InstanceNames = []string{"c1-1"}
	w.Instances = w.Instances[:1]
	return w
}

func TestSituationsAreSpokenOfByTheirRules(t *testing.T) {
	spoken := map[string]bool{}
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			d := Decide(s.world().Snapshot)
			if d.Rule != s.rule || d.Status.Phase != s.phase {
				t.Errorf("rule %q, phase %s (%s); want %q, %s", d.Rule, d.Status.Phase, d.Status.PhaseReason, s.rule, s.phase)
			}
		})
		spoken[s.rule] = true
	}
	for _, r := range PrimaryRules {
		if !spoken[r.Name] {
			t.Errorf("no situation is spoken of by the rule %q", r.Name)
		}
	}
}

func TestDecidingTwiceIsDecidingOnce(t *testing.T) {
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			before := s.world()
			d := Decide(before.Snapshot)
			if again := Decide(s.world().Snapshot); !reflect.DeepEqual(d, again) {
				t.Errorf("the same snapshot, another decision:\n%s", cmp.Diff(d, again))
			}
			if !reflect.DeepEqual(before.Cluster, s.world().Cluster) {
				t.Error("the snapshot was changed")
			}
			// The operator dies after the commit: the next one does the same, and no event is told twice.
			restarted := s.world()
			d.Status.DeepCopyInto(&restarted.Cluster.Status)
			next := Decide(restarted.Snapshot)
			if !equality.Semantic.DeepEqual(next.Status, d.Status) {
				t.Errorf("the status moves on by itself:\n%s", cmp.Diff(d.Status, next.Status))
			}
			// All was done: nothing is left to do.
			done := s.world().then(d)
			for range 4 {
				d = Decide(done.Snapshot)
				done.then(d)
			}
			if got := Decide(done.Snapshot); len(got.Actions) > 0 || !equality.Semantic.DeepEqual(got.Status, done.Cluster.Status) {
				t.Errorf("actions go on: %q\n%s", actions(got), cmp.Diff(done.Cluster.Status, got.Status))
			}
		})
	}
}

func TestEverySituationIsLookedAtAgain(t *testing.T) {
	for _, s := range situations {
		if d := Decide(s.world().Snapshot); d.Recheck <= 0 || d.Recheck > recordEvery {
			t.Errorf("%s: looked at again after %s", s.name, d.Recheck)
		}
	}
}

func TestSteadyStateChangesNothing(t *testing.T) {
	w := sound()
	d := Decide(w.Snapshot)
	if !equality.Semantic.DeepEqual(d.Status, w.Cluster.Status) || len(d.Actions)+len(d.Events) > 0 {
		t.Errorf("actions %q, events %q, status:\n%s", actions(d), events(d), cmp.Diff(w.Cluster.Status, d.Status))
	}
	// Writes go on, and the status does not follow each of them.
	w.held(1, "1:1-2000", "").held(2, "1:1-1990", "1:1-2000").held(3, "1:1-1980", "1:1-2000")
	if d := Decide(w.Snapshot); !equality.Semantic.DeepEqual(d.Status, w.Cluster.Status) {
		t.Errorf("a write changes the status:\n%s", cmp.Diff(w.Cluster.Status, d.Status))
	}
	w.Now = now.Add(recordEvery)
	if d := Decide(w.Snapshot); d.Status.GTIDExecutedByInstance["c1-1"] != set("1:1-2000").String() {
		t.Errorf("the record is not renewed: %v", d.Status.GTIDExecutedByInstance)
	}
}

func TestOperatorThatHasJustStartedSaysNothingNew(t *testing.T) {
	w := sound()
	for n := range w.Instances {
		w.Instances[n].Report, w.Instances[n].Asked = nil, false
	}
	d := Decide(w.Snapshot)
	if !equality.Semantic.DeepEqual(d.Status, w.Cluster.Status) || len(d.Actions)+len(d.Events) > 0 {
		t.Errorf("actions %q, events %q, status:\n%s", actions(d), events(d), cmp.Diff(w.Cluster.Status, d.Status))
	}
	if d.Recheck > time.Second {
		t.Errorf("looks again after %s", d.Recheck)
	}
}

func TestDeletedClusterIsLeftAlone(t *testing.T) {
	w := sound().lose(2)
	at := metav1.NewTime(now)
	w.Cluster.DeletionTimestamp = &at
	d := Decide(w.Snapshot)
	does(t, d)
	if d.Status.Phase != api.PhaseDeleting {
		t.Errorf("phase %s", d.Status.Phase)
	}
}

func TestInvalidSpecificationIsToldOnceAndDoesNotKeepAPrimaryFromBeingReplaced(t *testing.T) {
	w := deadPrimary()
	w.SpecProblem = "spec.instances: too many"
	d := Decide(w.Snapshot)
	if d.Status.PrimaryTransition == nil || !meta.IsStatusConditionFalse(d.Status.Conditions, api.ConditionSpecValid) {
		t.Errorf("transition %+v, conditions %+v", d.Status.PrimaryTransition, d.Status.Conditions)
	}
	says(t, d, "InvalidSpec: spec.instances: too many")
	w.then(d)
	if again := Decide(w.Snapshot); slices.ContainsFunc(again.Events, func(e Event) bool { return e.Reason == api.EventInvalidSpec }) {
		t.Error("it is told twice")
	}
}

func TestTroubleIsShownWithItsReason(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Instance)
		reason string
	}{
		"image":        {func(i *Instance) { i.Pod.Trouble, i.Pod.TroubleReason = "no image", api.ReasonImagePull }, api.ReasonImagePull},
		"volume":       {func(i *Instance) { i.Volumes[0].Trouble = "no class" }, api.ReasonVolumeNotBound},
		"provisioning": {func(i *Instance) { i.Report.Provision = &protocol.Provision{Step: "cloning", LastError: "denied"} }, api.ReasonServerDoesNotStart},
		"server": {func(i *Instance) {
			i.Report.MySQL, i.Report.Server = nil, protocol.Server{State: protocol.ServerDown, Restarts: 3, LastError: "corrupt"}
		}, api.ReasonServerDoesNotStart},
		"replication": {func(i *Instance) { i.Report.MySQL.Replication.SQLErrno = 1062 }, api.ReasonReplicationBroken},
	} {
		t.Run(name, func(t *testing.T) {
			w := sound()
			w.i(3).Pod.Ready = false
			tc.change(w.i(3))
			d := Decide(w.Snapshot)
			c := meta.FindStatusCondition(d.Status.Conditions, api.ConditionDegraded)
			if d.Status.Phase != api.PhaseDegraded || c.Reason != tc.reason || c.Message == "" {
				t.Errorf("phase %s, condition %+v", d.Status.Phase, c)
			}
		})
	}
}

// An operator on a machine whose date is ahead wrote the status, and was replaced by one whose date is right.
func TestTimesInTheFutureCountFromNow(t *testing.T) {
	const ahead = 5 * time.Hour
	future := func() metav1.MicroTime { return metav1.NewMicroTime(now.Add(ahead)) }
	failed := func() *world {
		w := deadPrimary()
		w.Cluster.Status.PrimaryFailingSince = new(future())
		w.Cluster.Spec.FailoverDelay = 30
		return w
	}
	hanging := func() *world {
		w := sound()
		w.i(1).Report.MySQL = nil
		w.Cluster.Status.PrimaryFailingSince = new(metav1.NewMicroTime(now.Add(-time.Hour)))
		w.Cluster.Status.PrimaryOpening = Decide(w.Snapshot).Status.PrimaryOpening
		w.Cluster.Status.PrimaryOpening.Since = future()
		w.Cluster.Spec.FailoverDelay = 30
		return w
	}
	switching := func() *world {
		w := moving()
		w.Cluster.Spec.MaxSwitchoverDelay = 60
		w.Cluster.Status.PrimaryTransition.StartedAt = future()
		w.Cluster.Status.PrimaryTransition.Deadline = new(metav1.NewMicroTime(now.Add(ahead + time.Minute)))
		return w
	}
	promoting := func() *world {
		w := failingOver()
		w.Cluster.Status.PrimaryTransition.StartedAt = future()
		w.i(2).Report.MySQL = nil
		return w
	}
	for _, tc := range []struct {
		name  string
		world func() *world
		after time.Duration
		says  string
	}{
		{"a primary that has failed", failed, 30 * time.Second, "c1-2 is promoted"},
		{"a primary that does not open", hanging, api.PrimaryLeaseTTL + 30*time.Second, "it has not been writable for 45 s"},
		{"a switchover", switching, time.Minute, "it did not finish within maxSwitchoverDelay (60 s)"},
		{"a failover", promoting, api.PrimaryLeaseTTL, "its server does not answer its manager"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := tc.world()
			begun := Decide(w.Snapshot)
			w.then(begun)
			w.Now = now.Add(tc.after - time.Millisecond)
			early := Decide(w.Snapshot)
			if slices.ContainsFunc(append(events(early), early.Status.PhaseReason), func(text string) bool { return strings.Contains(text, tc.says) }) {
				t.Errorf("too early: %q, %s", events(early), early.Status.PhaseReason)
			}
			if again := Decide(w.then(early).Snapshot); !equality.Semantic.DeepEqual(early.Status, again.Status) {
				t.Errorf("it is written again:\n%s", cmp.Diff(early.Status, again.Status))
			}
			w.Now = now.Add(tc.after)
			says(t, Decide(w.Snapshot), tc.says)
		})
	}
}
