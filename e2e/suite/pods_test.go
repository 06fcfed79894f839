package suite

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestDeletedPodOfThePrimaryLosesNothing(t *testing.T) {
	for name, flags := range map[string][]string{"in peace": {"--wait=false"}, "at once": {"--grace-period=0", "--force"}} {
		t.Run(name, func(t *testing.T) {
			e, key := shared(t)
			before := status(t, e, key).Status
			whileWriting(t, e, key, func() {
				_, err := e.Kubectl(t.Context(), append([]string{"-n", key.Namespace, "delete", "pod", before.CurrentPrimary}, flags...)...)
				must(t, err)
				_, err = e.AwaitPrimary(t.Context(), key, before.CurrentPrimary, readyWithin)
				must(t, err)
			})
			if after := status(t, e, key).Status; after.CurrentPrimaryGeneration <= before.CurrentPrimaryGeneration {
				t.Errorf("generation %d, before %d", after.CurrentPrimaryGeneration, before.CurrentPrimaryGeneration)
			}
		})
	}
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
