package core

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// failures are the events about instances that do not get going.
func failures(d Decision) []string {
	var all []string
	for _, e := range d.Events {
		if e.Reason == api.EventProvisioningFailed && e.Warning {
			all = append(all, e.Message)
		}
	}
	return all
}

// being is a Cluster whose first instance is made, with a Pod that runs and a manager that answers.
func being() *world {
	w := bootstrapping()
	i := Instance{Name: "c1-1", Ordinal: 1, CertificateReady: true, Volumes: []Volume{{Name: "c1-1"}}, Pod: &Pod{UID: "pod-1", Running: true}}
	i.Report = &protocol.Report{Instance: "c1-1", PodUID: "pod-1", Provision: &protocol.Provision{Step: "initialising"}}
	w.Instances = []Instance{i}
	w.settled()
	return w
}

func TestWhatKeepsAnInstanceFromGettingGoingIsToldOnceAndNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*Instance)
		words []string
	}{
		"image": {func(i *Instance) {
			i.Pod, i.Report = &Pod{Trouble: "the image mysql:0 cannot be pulled: correct spec.imageName", TroubleReason: api.ReasonImagePull}, nil
		}, []string{"c1-1: the image mysql:0", "correct spec.imageName"}},
		"storage class": {func(i *Instance) { i.Volumes[0].Trouble = "the storage class fast does not exist" }, []string{"c1-1: volume claim c1-1: the storage class fast"}},
		"parameter": {func(i *Instance) {
			i.Report.Provision.LastError = "initialising the server: exit code 1: MY-000067 unknown variable 'nonsense=1'."
		}, []string{"nonsense=1'; correct spec.mysql.parameters"}},
		"parameter of a server that has its data": {func(i *Instance) {
			i.Report.Provision, i.Report.Server = nil, protocol.Server{State: protocol.ServerDown, Restarts: 1, LastError: "MY-000067 unknown variable 'nonsense=1'."}
		}, []string{"does not start", "correct spec.mysql.parameters"}},
		"what only the log explains": {func(i *Instance) { i.Report.Provision.LastError = "denied" }, []string{"c1-1: initialising failed: denied; kubectl logs c1-1 has more"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := being()
			tc.spoil(w.i(1))
			d := Decide(w.Snapshot)
			got := failures(d)
			if len(got) != 1 {
				t.Fatalf("events %q", got)
			}
			for _, word := range tc.words {
				if !strings.Contains(got[0], word) || !strings.Contains(d.Status.PhaseReason, word) {
					t.Errorf("event %q, phase %q: neither may lack %q", got[0], d.Status.PhaseReason, word)
				}
			}
			// The next attempt fails like this one: no word changes, and nothing is told again.
			w.then(d)
			if pr := w.i(1).Report; pr != nil && pr.Provision != nil {
				pr.Provision.Attempts++
			}
			next := Decide(w.Snapshot)
			if again := failures(next); len(again) > 0 || next.Status.PhaseReason != d.Status.PhaseReason {
				t.Errorf("events %q, phase %q after %q", again, next.Status.PhaseReason, d.Status.PhaseReason)
			}
		})
	}
}

func TestAServerThatRunsIsNotSaidNotToStart(t *testing.T) {
	for _, state := range []protocol.ServerState{protocol.ServerRunning, protocol.ServerStopping} {
		w := being()
		i := w.i(1)
		i.Report.Provision, i.Report.MySQL = nil, nil
		i.Report.Server = protocol.Server{State: state, Restarts: 1, LastError: "MY-013360 something of the last run"}
		if d := Decide(w.Snapshot); len(failures(d)) > 0 || strings.Contains(d.Status.PhaseReason, "does not start") {
			t.Errorf("%s: events %q, phase %q", state, failures(d), d.Status.PhaseReason)
		}
	}
}

func TestAnotherTroubleOfTheSameInstanceIsTold(t *testing.T) {
	w := being()
	w.i(1).Volumes[0].Trouble = "no class"
	w.then(Decide(w.Snapshot))
	w.i(1).Volumes[0].Trouble, w.i(1).Pod.Trouble, w.i(1).Pod.TroubleReason = "", "no image", api.ReasonImagePull
	d := Decide(w.Snapshot)
	if got := failures(d); len(got) != 1 || got[0] != "c1-1: no image" {
		t.Errorf("events %q", got)
	}
	if got := failures(Decide(w.then(d).Snapshot)); len(got) != 0 {
		t.Errorf("told again: %q", got)
	}
}

func TestTroublesOfSeveralInstancesAreToldOfEachOnce(t *testing.T) {
	w := sound()
	for n := range 2 {
		w.i(n+2).Pod.Ready, w.i(n+2).Pod.Trouble, w.i(n+2).Pod.TroubleReason = false, "no image", api.ReasonImagePull
	}
	w.i(3).Pod.TroubleReason = api.ReasonPodUnschedulable
	d := Decide(w.Snapshot)
	if got := failures(d); len(got) != 2 {
		t.Errorf("events %q", got)
	}
	if got := failures(Decide(w.then(d).Snapshot)); len(got) != 0 {
		t.Errorf("told again: %q", got)
	}
}

func TestProvisioningIsOnlyBeforeTheFirstEstablishment(t *testing.T) {
	w := sound()
	w.Cluster.Spec.Instances = 4
	w.then(Decide(w.Snapshot))
	d := Decide(w.Snapshot)
	c := meta.FindStatusCondition(d.Status.Conditions, api.ConditionProgressing)
	if d.Status.Phase != api.PhaseDegraded || c.Status != metav1.ConditionTrue || c.Reason != api.ReasonProvisioning {
		t.Errorf("a Cluster that grows: phase %s, condition %+v", d.Status.Phase, c)
	}
	w.Cluster.Status.EstablishedAt = nil
	if d := Decide(w.Snapshot); d.Status.Phase != api.PhaseProvisioning {
		t.Errorf("one that was never complete: phase %s", d.Status.Phase)
	}
	w = sound().lose(3)
	if d := Decide(w.Snapshot); !meta.IsStatusConditionFalse(d.Status.Conditions, api.ConditionProgressing) {
		t.Error("an instance that is lost counts as one that is made")
	}
}

func TestVolumesThatAreTooSmallAreNamed(t *testing.T) {
	w := sound()
	w.i(2).Volumes[0].Small = "asks for 1Gi and spec.storage.size is 2Gi"
	d := Decide(w.Snapshot)
	c := meta.FindStatusCondition(d.Status.Conditions, api.ConditionUpToDate)
	if c.Status != metav1.ConditionFalse || c.Reason != api.ReasonConfigurationNotApplied || !strings.Contains(c.Message, "not grown by the operator yet: c1-2 asks for 1Gi and spec.storage.size is 2Gi") {
		t.Errorf("condition %+v", c)
	}
	if d.Status.Phase != api.PhaseReady {
		t.Errorf("phase %s", d.Status.Phase)
	}
}
