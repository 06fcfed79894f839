package core

import (
	"slices"
	"testing"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

func TestFirstInstance(t *testing.T) {
	w := fresh()
	d := Decide(w.Snapshot)
	if tr := d.Status.PrimaryTransition; tr == nil || tr.Kind != api.TransitionBootstrap || tr.To != "c1-1" || tr.Generation != 1 {
		t.Errorf("transition %+v", tr)
	}
	does(t, d, "create volumes c1-1") // its certificate is not there yet
	d = Decide(w.then(d).Snapshot)
	does(t, d, "create Pod c1-1")
}

func TestNothingIsMadeBeforeWhatItNeeds(t *testing.T) {
	w := fresh()
	w.NotReadyYet = "credentials"
	d := Decide(w.Snapshot)
	does(t, d)
	says(t, d, "Provisioning: waiting for credentials")
	w = fresh()
	w.SpecProblem = "spec.imageName: bad"
	d = Decide(w.Snapshot)
	does(t, d)
	says(t, d, "Blocked: the specification cannot be carried out: spec.imageName: bad")
	// The same after the transition was written.
	w = bootstrapping()
	w.SpecProblem = "spec.imageName: bad"
	d = Decide(w.Snapshot)
	does(t, d)
	says(t, d, "Blocked: the specification cannot be carried out: spec.imageName: bad")
}

func TestNoEmptyPrimaryWhereThereWasData(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*world)
		says   string
	}{
		"volumes exist": {func(w *world) {
			w.Instances = []Instance{{Name: "c1-1", Ordinal: 1, Volumes: []Volume{{Name: "c1-1"}}}}
		}, "volume claims of an earlier Cluster"},
		"the lease is held":     {func(w *world) { w.Lease.Holder = "c1-1/pod-1" }, "is held by c1-1/pod-1"},
		"it was established":    {func(w *world) { at := *sound().Cluster.Status.EstablishedAt; w.Cluster.Status.EstablishedAt = &at }, "names no primary although"},
		"a generation is known": {func(w *world) { w.Cluster.Status.CurrentPrimaryGeneration = 4 }, "(generation 4)"},
	} {
		t.Run(name, func(t *testing.T) {
			w := fresh()
			tc.change(w)
			d := Decide(w.Snapshot)
			does(t, d)
			says(t, d, "Blocked: ")
			says(t, d, tc.says)
			if d.Status.PrimaryTransition != nil {
				t.Errorf("transition %+v", d.Status.PrimaryTransition)
			}
		})
	}
}

func TestRunningPodsSurviveAWipedStatus(t *testing.T) {
	d := Decide(wiped().Snapshot)
	if slices.ContainsFunc(d.Actions, func(a Action) bool { return a.Kind == DeletePod }) {
		t.Errorf("actions %q", actions(d))
	}
}

func TestTheNextInstanceIsMadeWhenTheOneBeforeIsReady(t *testing.T) {
	for name, change := range map[string]func(*Instance){
		"it is not Ready": func(i *Instance) { i.Pod.Ready = false },
		"it has no Pod":   func(i *Instance) { i.Pod = nil },
	} {
		t.Run(name, func(t *testing.T) {
			w := sound()
			w.Cluster.Spec.Instances = 4
			change(w.i(3))
			d := Decide(w.Snapshot)
			if got := d.Status.InstanceNames; len(got) != 3 {
				t.Errorf("instances %v", got)
			}
			says(t, d, "1 more to be created, once c1-3 is Ready")
			w = sound()
			w.Cluster.Spec.Instances = 4
			change(w.i(2)) // an earlier one that was well when the last was made
			if got := Decide(w.Snapshot).Status.InstanceNames; len(got) != 4 {
				t.Errorf("instances %v", got)
			}
		})
	}
}

func TestScaleUpIsOneAtATimeAndNumbersAreNotReused(t *testing.T) {
	w := sound()
	w.Cluster.Spec.Instances = 6
	w.Cluster.Status.LatestGeneratedNode = 4
	d := Decide(w.Snapshot)
	if got := d.Status.InstanceNames; !slices.Equal(got, []string{"c1-1", "c1-2", "c1-3", "c1-5"}) {
		t.Errorf("instances %v", got)
	}
	does(t, d, "create volumes c1-5")
	d = Decide(w.then(d).Snapshot)
	does(t, d, "create Pod c1-5")
	if len(d.Status.InstanceNames) != 4 {
		t.Errorf("instances %v", d.Status.InstanceNames)
	}
}

func TestScaleUpWaitsForAJoinButNotForOneThatFailed(t *testing.T) {
	w := sound()
	w.Cluster.Spec.Instances = 4
	w.i(3).Report.Provision = &protocol.Provision{Step: "cloning"}
	if d := Decide(w.Snapshot); len(d.Status.InstanceNames) != 3 {
		t.Errorf("instances %v while one is cloned", d.Status.InstanceNames)
	}
	w = sound().held(3, "1:1-100, 3:1", "")
	w.Cluster.Spec.Instances = 4
	if d := Decide(w.Snapshot); len(d.Status.InstanceNames) != 4 {
		t.Errorf("instances %v while one has diverged", d.Status.InstanceNames)
	}
	w = sound().lose(1)
	w.Cluster.Spec.Instances = 4
	if d := Decide(w.Snapshot); len(d.Status.InstanceNames) != 3 {
		t.Errorf("instances %v without a primary", d.Status.InstanceNames)
	}
}

func TestScaleDownTakesTheNewestAndNeverThePrimary(t *testing.T) {
	w := sound()
	w.Cluster.Spec.Instances = 1
	for _, want := range []string{"c1-3", "c1-2"} {
		d := Decide(w.Snapshot)
		does(t, d, `label Pod `+want+` "replica" false`, "delete Pod "+want)
		w.then(d)
		w.lose(int(want[3] - '0'))
	}
	does(t, Decide(w.Snapshot))

	w = moving().stepDown("1:1-100").claimed().opened()
	w.then(Decide(w.Snapshot))
	w.Cluster.Spec.Instances = 2
	if d := Decide(w.Snapshot); !slices.Equal(d.Status.InstanceNames, []string{"c1-1", "c1-2"}) {
		t.Errorf("instances %v", d.Status.InstanceNames)
	}
	w = moving()
	w.Cluster.Spec.Instances = 2
	if d := Decide(w.Snapshot); len(d.Status.InstanceNames) != 3 {
		t.Errorf("instances %v during a switchover", d.Status.InstanceNames)
	}
}

func TestLostVolume(t *testing.T) {
	w := sound().lose(3)
	w.i(3).Volumes, w.i(3).MissingVolumes = nil, []string{"c1-3"}
	does(t, Decide(w.Snapshot), "create volumes c1-3", "create Pod c1-3")

	w = sound().lose(3)
	w.i(3).Volumes[0].Terminating = true
	does(t, Decide(w.Snapshot))

	w = sound() // a Pod that waits for a claim which is gone
	w.i(3).Pod, w.i(3).Report = &Pod{UID: "new"}, nil
	w.i(3).Volumes, w.i(3).MissingVolumes = nil, []string{"c1-3"}
	does(t, Decide(w.Snapshot), "create volumes c1-3")

	w = sound().lose(1).free() // the primary's: replaced first
	w.i(1).Volumes, w.i(1).MissingVolumes = nil, []string{"c1-1"}
	d := Decide(w.Snapshot)
	does(t, d)
	if d.Status.PrimaryTransition == nil || d.Status.PrimaryTransition.To != "c1-2" {
		t.Errorf("transition %+v", d.Status.PrimaryTransition)
	}
	w.then(d).claimed().opened()
	does(t, Decide(w.Snapshot), `label Pod c1-2 "primary" true`, "create volumes c1-1", "create Pod c1-1", "record failover c1")
}

func TestPodThatCannotComeToAnythingIsMadeAgainOneAtATime(t *testing.T) {
	w := sound()
	w.i(2).Pod.Ended, w.i(3).Pod.Ended = "Failed (Evicted)", "Failed (Evicted)"
	w.i(2).Report, w.i(3).Report = nil, nil
	does(t, Decide(w.Snapshot), "delete Pod c1-2")

	w = sound()
	w.i(2).Pod.Outdated = true
	does(t, Decide(w.Snapshot)) // it runs
	w.i(2).Pod.Running, w.i(2).Pod.Ready, w.i(2).Report = false, false, nil
	does(t, Decide(w.Snapshot), "delete Pod c1-2")
}

func TestDivergence(t *testing.T) {
	w := sound().held(3, "1:1-100, 3:1-2", "")
	d := Decide(w.Snapshot)
	if got := d.Status.Divergence; len(got) != 1 || got[0].Instance != "c1-3" || got[0].Count != 2 {
		t.Fatalf("divergence %+v", got)
	}
	does(t, d, `label Pod c1-3 "replica" false`)
	w.then(d)

	marked := func() *world { m := sound(); m.Cluster.Status = *w.Cluster.Status.DeepCopy(); return m }
	if d := Decide(marked().silence(3).Snapshot); len(d.Status.Divergence) != 1 {
		t.Error("the mark went with the instance's voice")
	}
	if d := Decide(marked().crash(1).free().Snapshot); len(d.Status.Divergence) != 1 || d.Status.PrimaryTransition == nil {
		t.Error("the mark went with the primary")
	}

	w.held(3, "1:1-100", "")
	if d := Decide(w.Snapshot); len(d.Status.Divergence) != 0 {
		t.Errorf("divergence %+v although the live primary holds it all", d.Status.Divergence)
	}
	// What the primary committed after it was read is no divergence.
	w.held(2, "1:1-105", "")
	if d := Decide(w.Snapshot); len(d.Status.Divergence) != 0 {
		t.Errorf("divergence %+v of a replica that leads", d.Status.Divergence)
	}
}

func TestPlaces(t *testing.T) {
	for name, tc := range map[string]struct {
		change   func(*world)
		instance int
		role     string
		routable bool
	}{
		"a working replica":                     {func(*world) {}, 2, api.RoleReplica, true},
		"the writable primary":                  {func(*world) {}, 1, api.RolePrimary, true},
		"the primary in a switchover":           {func(w *world) { w.transition(api.TransitionSwitchover, "c1-2") }, 1, "", false},
		"a primary that is not writable":        {func(w *world) { w.i(1).Report.MySQL.SuperReadOnly = true }, 1, "", false},
		"writable, but of an old generation":    {func(w *world) { w.i(1).Report.Role.Generation = 2 }, 1, "", false},
		"a replica that is writable":            {func(w *world) { m := w.i(2).Report.MySQL; m.ReadOnly, m.SuperReadOnly = false, false }, 2, "", false},
		"a replica whose server is down":        {func(w *world) { w.crash(2) }, 2, api.RoleReplica, false},
		"a replica whose Pod is being stopped":  {func(w *world) { w.i(2).Pod.Terminating = true }, 2, api.RoleReplica, false},
		"a silent replica":                      {func(w *world) { w.silence(2) }, 2, api.RoleReplica, true},
		"a silent one with the primary's label": {func(w *world) { w.silence(2).i(2).Pod.Role = api.RolePrimary }, 2, "", false},
		"one that is being cloned":              {func(w *world) { w.i(2).Report.Provision = &protocol.Provision{} }, 2, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := sound()
			tc.change(w)
			w.then(Decide(w.Snapshot))
			if pod := w.i(tc.instance).Pod; pod.Role != tc.role || pod.Routable != tc.routable {
				t.Errorf("role %q, routable %t; want %q, %t", pod.Role, pod.Routable, tc.role, tc.routable)
			}
		})
	}
}

// A commit without a replica to acknowledge it waits, and while it waits no replica can be cloned.
func TestTheFirstPrimaryIsInNoServiceBeforeItsCommitsCanBeAcknowledged(t *testing.T) {
	w := sound()
	w.Cluster.Status.EstablishedAt = nil
	w.Cluster.Spec.MinSyncReplicas = 1
	w.Cluster.Spec.MySQL.SemiSync = &api.SemiSyncConfiguration{Enabled: true}
	pod, semi := w.i(1).Pod, &w.i(1).Report.MySQL.SemiSync
	pod.Role, pod.Routable = "", false
	*semi = protocol.SemiSync{SourceEnabled: true, SourceActive: true, WaitFor: 1}
	for _, a := range Decide(w.Snapshot).First {
		if a.Instance == "c1-1" {
			t.Errorf("without a replica: %+v", a)
		}
	}
	semi.Clients = 1
	if a := Decide(w.Snapshot).First; len(a) != 1 || a[0].Instance != "c1-1" || a[0].Role != api.RolePrimary || !a[0].Routable {
		t.Errorf("with one: %+v", a)
	}
	// Once it is there it stays.
	pod.Role, pod.Routable, semi.Clients = api.RolePrimary, true, 0
	for _, a := range Decide(w.Snapshot).Actions {
		if a.Kind == LabelPod {
			t.Errorf("a replica went: %+v", a)
		}
	}
}

func TestNoTwoPodsCarryThePrimarysLabelAtAnyMoment(t *testing.T) {
	w := sound()
	w.i(1).Report = nil // silent all the time; its label is only taken because c1-2 has the role
	w.transition(api.TransitionFailover, "c1-2")
	w.i(1).Pod.Role, w.i(1).Pod.Routable = api.RolePrimary, true
	w.claimed().opened()
	d := Decide(w.Snapshot)
	does(t, d, `label Pod c1-1 "" false`, `label Pod c1-2 "primary" true`, "record failover c1")
}
