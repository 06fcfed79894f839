package suite

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
		for _, kind := range []string{"pvc", "pod"} {
			_, err := e.Kubectl(t.Context(), "-n", key.Namespace, "delete", kind, lost.Name, "--wait=false")
			must(t, err)
		}
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
