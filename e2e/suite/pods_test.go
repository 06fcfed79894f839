package suite

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

func TestDeletedPodOfThePrimaryLosesNothing(t *testing.T) {
	t.Run("in peace", func(t *testing.T) {
		e, key := shared(t)
		before := status(t, e, key).Status
		whileWriting(t, e, key, func() {
			_, err := e.Kubectl(t.Context(), "-n", key.Namespace, "delete", "pod", before.CurrentPrimary, "--wait=false")
			must(t, err)
			_, err = e.AwaitPrimary(t.Context(), key, before.CurrentPrimary, readyWithin)
			must(t, err)
		})
		if after := status(t, e, key).Status; after.CurrentPrimaryGeneration <= before.CurrentPrimaryGeneration {
			t.Errorf("generation %d, before %d", after.CurrentPrimaryGeneration, before.CurrentPrimaryGeneration)
		}
	})
	// A server that is killed before its lease was given back may be back, and resume, before the lease has expired.
	t.Run("at once", func(t *testing.T) {
		e, key := shared(t)
		before := status(t, e, key).Status
		whileWriting(t, e, key, func() {
			deleted := &corev1.Pod{}
			must(t, e.Client.Get(t.Context(), client.ObjectKey{Namespace: key.Namespace, Name: before.CurrentPrimary}, deleted))
			_, err := e.Kubectl(t.Context(), "-n", key.Namespace, "delete", "pod", deleted.Name, "--grace-period=0", "--force")
			must(t, err)
			NewWithT(t).Eventually(func() bool {
				pods, err := e.Pods(t.Context(), key)
				must(t, err)
				return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Labels[api.LabelRole] == api.RolePrimary && p.UID != deleted.UID })
			}, readyWithin, "200ms").Should(BeTrue(), "another Pod has the primary's label")
		})
	})
}

func TestAllPodsDeletedAtOnceComeBackWithEverything(t *testing.T) {
	e, key := shared(t)
	whileWriting(t, e, key, func() {
		old, err := e.Pods(t.Context(), key)
		must(t, err)
		_, err = e.Kubectl(t.Context(), "-n", key.Namespace, "delete", "pods", "-l", "mysql.cnmsql.co/cluster="+key.Name, "--wait=false")
		must(t, err)
		NewWithT(t).Eventually(func() int {
			pods, err := e.Pods(t.Context(), key)
			must(t, err)
			replaced := 0
			for _, p := range pods {
				for _, o := range old {
					if p.Name == o.Name && p.UID != o.UID {
						replaced++
					}
				}
			}
			return replaced
		}, "3m", "500ms").Should(Equal(3))
	})
}
