package status_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/fakeapi"
	"cnmsql.co/operator/controllers/internal/status"
)

func cluster() *api.Cluster {
	return &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1", UID: "uid-of-c1", Generation: 4}}
}

func read(t *testing.T, s *fakeapi.Server) *api.Cluster {
	t.Helper()
	c := &api.Cluster{}
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "c1"}, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func condition(kind string, is metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: is, Reason: reason, Message: "so it is"}
}

func apply(t *testing.T, s *fakeapi.Server, manager string, owns status.Owns, f status.Fields) bool {
	t.Helper()
	wrote, err := status.Apply(t.Context(), s, manager, read(t, s), owns, f)
	if err != nil {
		t.Fatal(err)
	}
	return wrote
}

func TestApplyWritesOnceAndOnlyItsOwnFields(t *testing.T) {
	s := fakeapi.New(t, cluster())
	base := read(t, s)
	changed := base.DeepCopy()
	changed.Status.Phase, changed.Status.InstanceNames = api.PhaseReady, []string{"c1-1"}
	changed.Status.Instances, changed.Status.ReadyInstances = 2, 1
	meta.SetStatusCondition(&changed.Status.Conditions, condition(api.ConditionReady, metav1.ConditionTrue, "Healthy"))
	if wrote, err := status.Patch(t.Context(), s, "cnmsql-topology", base, changed); err != nil || !wrote {
		t.Fatal(wrote, err)
	}
	services := status.Fields{Conditions: []metav1.Condition{condition(api.ConditionServicesReady, metav1.ConditionTrue, "Reconciled")}}
	lease := status.Fields{PrimaryLease: &api.PrimaryLeaseStatus{Holder: "c1-1/uid"}}
	if !apply(t, s, "cnmsql-services", status.Owns{}, services) || !apply(t, s, "cnmsql-lease", status.Owns{PrimaryLease: true}, lease) {
		t.Error("a first write did not happen")
	}
	s.Taken()
	if apply(t, s, "cnmsql-services", status.Owns{}, services) || apply(t, s, "cnmsql-lease", status.Owns{PrimaryLease: true}, lease) || len(s.Taken()) > 0 {
		t.Error("an unchanged status was written")
	}
	got := read(t, s)
	if got.Status.Instances != 2 || got.Status.ReadyInstances != 1 {
		t.Errorf("the counts of topology were overwritten: %+v", got.Status)
	}
	for _, m := range got.ManagedFields {
		small := m.Manager == "cnmsql-services" || m.Manager == "cnmsql-lease"
		if small && strings.Contains(m.FieldsV1.GetRawString(), "readyInstances") {
			t.Errorf("%s owns counts: %s", m.Manager, m.FieldsV1.GetRawString())
		}
	}
	if got.Status.Phase != api.PhaseReady || got.Status.PrimaryLease.Holder != "c1-1/uid" || len(got.Status.Conditions) != 2 {
		t.Errorf("status %+v", got.Status)
	}
	if c := meta.FindStatusCondition(got.Status.Conditions, api.ConditionServicesReady); c.ObservedGeneration != 4 || c.LastTransitionTime.IsZero() {
		t.Errorf("condition %+v", c)
	}
	if !apply(t, s, "cnmsql-lease", status.Owns{PrimaryLease: true}, status.Fields{}) || read(t, s).Status.PrimaryLease != nil {
		t.Error("a field that its owner gave up is still there")
	}
}

func TestTransitionTimeMovesOnlyWithTheStatus(t *testing.T) {
	c := cluster()
	past := metav1.Unix(1700000000, 0)
	old := condition(api.ConditionServicesReady, metav1.ConditionFalse, "ForeignObject")
	old.LastTransitionTime = past
	c.Status.Conditions = []metav1.Condition{old}
	s := fakeapi.New(t, c)
	other := condition(api.ConditionServicesReady, metav1.ConditionFalse, "Other")
	apply(t, s, "cnmsql-services", status.Owns{}, status.Fields{Conditions: []metav1.Condition{other}})
	if got := read(t, s).Status.Conditions[0]; !got.LastTransitionTime.Equal(&past) || got.Reason != "Other" {
		t.Errorf("another reason moved the time: %+v", got)
	}
	apply(t, s, "cnmsql-services", status.Owns{}, status.Fields{Conditions: []metav1.Condition{condition(api.ConditionServicesReady, metav1.ConditionTrue, "Reconciled")}})
	if got := read(t, s).Status.Conditions[0]; got.LastTransitionTime.Equal(&past) {
		t.Error("another status did not move the time")
	}
}

func TestPatchOfAStaleClusterIsRefused(t *testing.T) {
	s := fakeapi.New(t, cluster())
	stale := read(t, s)
	changed := stale.DeepCopy()
	changed.Status.Phase = api.PhaseReady
	if _, err := status.Patch(t.Context(), s, "cnmsql-topology", stale, changed); err != nil {
		t.Fatal(err)
	}
	again := stale.DeepCopy()
	again.Status.Phase = api.PhaseBlocked
	if _, err := status.Patch(t.Context(), s, "cnmsql-topology", stale, again); !apierrors.IsConflict(err) {
		t.Errorf("error %v", err)
	}
	if got := read(t, s).Status.Phase; got != api.PhaseReady {
		t.Errorf("phase %s", got)
	}
}

func TestPatchSendsNoDefaultsAndNothingWhenNothingChanged(t *testing.T) {
	s := fakeapi.New(t, cluster())
	base := read(t, s)
	changed := base.DeepCopy()
	changed.Default()
	if wrote, err := status.Patch(t.Context(), s, "cnmsql-topology", base, changed); err != nil || wrote || len(s.Taken()) > 0 {
		t.Error("an unchanged status was written", err)
	}
	changed.Status.Phase = api.PhaseReady
	if _, err := status.Patch(t.Context(), s, "cnmsql-topology", base, changed); err != nil {
		t.Fatal(err)
	}
	if changed.Spec.ImageName != api.DefaultImageName || read(t, s).Spec.ImageName != "" {
		t.Error("the patch touched the specification")
	}
}

// What is left out when it is empty must go from the stored object, too, or it would be seen for ever.
func TestWhatBecomesEmptyOrZeroIsGoneFromTheStoredStatus(t *testing.T) {
	c := cluster()
	c.Status.DivergedInstances, c.Status.FailedInstances = []string{"c1-2"}, []string{"c1-3"}
	c.Status.Divergence = []api.Divergence{{Instance: "c1-2", GTIDSet: "x", Count: 3}}
	c.Status.ReadyInstances, c.Status.PhaseReason = 2, "c1-2 has diverged"
	c.Status.SemiSync = &api.SemiSyncStatus{Configured: 2, Effective: 1, Active: true, Ackers: []string{"c1-2"}}
	s := fakeapi.New(t, c)
	base := read(t, s)
	changed := base.DeepCopy()
	changed.Status.DivergedInstances, changed.Status.FailedInstances, changed.Status.Divergence = nil, []string{}, nil
	changed.Status.ReadyInstances, changed.Status.PhaseReason = 0, ""
	changed.Status.SemiSync = &api.SemiSyncStatus{Configured: 2}
	if _, err := status.Patch(t.Context(), s, "cnmsql-topology", base, changed); err != nil {
		t.Fatal(err)
	}
	if got := read(t, s).Status; len(got.DivergedInstances)+len(got.FailedInstances)+len(got.Divergence) > 0 || got.ReadyInstances != 0 || got.PhaseReason != "" ||
		got.SemiSync.Active || got.SemiSync.Effective != 0 || len(got.SemiSync.Ackers) > 0 {
		t.Errorf("stored: %+v", got)
	}
}
