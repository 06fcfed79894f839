package suite

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

// A Cluster grows and shrinks under writes. The volumes of removed instances stay, and their numbers are not
// given again; nothing else is left of them.
func scalingUpDownAndUpAgain(t *testing.T) {
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
	kinds := "services,certificates,secrets,serviceaccounts,roles,rolebindings"
	of := func(instance string) func() (string, error) {
		return func() (string, error) {
			return e.Kubectl(t.Context(), "-n", key.Namespace, "get", kinds, "-l", api.LabelCluster+"="+key.Name+","+api.LabelInstance+"="+instance, "-o", "name")
		}
	}
	g := NewWithT(t)
	g.Eventually(of("scale-3"), "60s", "500ms").Should(BeEmpty(), "of the removed instance something is left")
	// The same question about one that exists: else an empty answer says nothing.
	names, err := of("scale-4")()
	must(t, err)
	if got := strings.Fields(names); len(got) != 6 {
		t.Errorf("of an instance that exists there are %v, want one of each of %s", got, kinds)
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
