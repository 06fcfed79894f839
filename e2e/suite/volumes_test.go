package suite

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/e2e/framework"
)

// The primary of an established Cluster that loses its volume with its Pod is replaced by an instance that has the
// data, and comes back with a new, empty volume only after that: never as an empty primary.
func TestPrimaryThatLosesItsVolumeIsReplacedAndComesBackAsAReplica(t *testing.T) {
	e, key := shared(t)
	before := status(t, e, key).Status
	lost := client.ObjectKey{Namespace: key.Namespace, Name: before.CurrentPrimary}
	old := &corev1.PersistentVolumeClaim{}
	must(t, e.Client.Get(t.Context(), lost, old))
	whileWriting(t, e, key, func() {
		loseVolume(t, e, lost)
		_, err := e.AwaitPrimary(t.Context(), key, lost.Name, readyWithin)
		must(t, err)
		NewWithT(t).Eventually(func() bool {
			claim := &corev1.PersistentVolumeClaim{}
			return e.Client.Get(t.Context(), lost, claim) == nil && claim.UID != old.UID
		}, "2m", "500ms").Should(BeTrue(), "the volume is not made anew")
		ready(t, e, key)
	})
	after := status(t, e, key).Status
	if after.CurrentPrimary == lost.Name || after.CurrentPrimaryGeneration != before.CurrentPrimaryGeneration+1 || !equal(after.InstanceNames, before.InstanceNames...) {
		t.Errorf("primary %s in generation %d of %v, before %s in generation %d of %v", after.CurrentPrimary, after.CurrentPrimaryGeneration, after.InstanceNames,
			before.CurrentPrimary, before.CurrentPrimaryGeneration, before.InstanceNames)
	}
}

// loseVolume deletes an instance's volume claim and its Pod.
func loseVolume(t *testing.T, e *framework.Environment, instance client.ObjectKey) {
	t.Helper()
	for _, kind := range []string{"pvc", "pod"} {
		_, err := e.Kubectl(t.Context(), "-n", instance.Namespace, "delete", kind, instance.Name, "--wait=false")
		must(t, err)
	}
}

// The only replica of a Cluster loses its volume while an application writes. The commits that wait for it would keep it from
// being made anew for an hour.
func theOnlyReplicaIsMadeAnewUnderWrites(t *testing.T, e *framework.Environment, key client.ObjectKey) {
	t.Helper()
	before := status(t, e, key).Status
	whileWriting(t, e, key, func() {
		loseVolume(t, e, named(key, replica(t, e, key)))
		NewWithT(t).Expect(events(t, e, key)).NotTo(ContainSubstring(api.EventCommitsLetGo))
		NewWithT(t).Eventually(func() string { return events(t, e, key) }, "4m", "500ms").Should(ContainSubstring(api.EventCommitsLetGo))
		ready(t, e, key)
	})
	if after := status(t, e, key).Status; after.CurrentPrimaryGeneration != before.CurrentPrimaryGeneration {
		t.Errorf("generation %d, before %d", after.CurrentPrimaryGeneration, before.CurrentPrimaryGeneration)
	}
}
