package suite

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A Cluster grows and shrinks under writes. The volumes of removed instances stay, and their numbers are not
// given again.
func TestScalingUpDownAndUpAgain(t *testing.T) {
	e := environment(t)
	key := create(t, e, newCluster("scale", 1))
	ready(t, e, key)
	for _, n := range []int{3, 2, 3} {
		t.Run(fmt.Sprintf("to %d", n), func(t *testing.T) {
			whileWriting(t, e, key, func() {
				_, err := e.Kubectl(t.Context(), "-n", key.Namespace, "scale", "mysql", key.Name, fmt.Sprintf("--replicas=%d", n))
				must(t, err)
				ready(t, e, key)
			})
			NewWithT(t).Eventually(func() (int, error) {
				pods, err := e.Pods(t.Context(), key)
				return len(pods), err
			}, "1m", "200ms").Should(Equal(n))
		})
	}
	if got := status(t, e, key).Status.InstanceNames; !equal(got, "scale-1", "scale-2", "scale-4") {
		t.Errorf("instances %v", got)
	}
	claims := &corev1.PersistentVolumeClaimList{}
	must(t, e.Client.List(t.Context(), claims, client.InNamespace(key.Namespace), client.MatchingLabels{"mysql.cnmsql.co/cluster": key.Name}))
	if len(claims.Items) != 4 {
		t.Errorf("%d volume claims, want those of all four instances that ever were", len(claims.Items))
	}
}

func equal(got []string, want ...string) bool { return fmt.Sprint(got) == fmt.Sprint(want) }
