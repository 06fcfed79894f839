package suite

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

// With a Cluster goes all that was made for it, the issued Secrets included, at once and without a finalizer that
// could hold it up.
func deletedClusterLeavesNothing(t *testing.T) {
	e := environment(t)
	key := create(t, e, newCluster("gone", 1))
	ready(t, e, key)
	must(t, e.Client.Delete(t.Context(), &api.Cluster{ObjectMeta: status(t, e, key).ObjectMeta}))
	begin := time.Now()
	g := NewWithT(t)
	g.Eventually(func() (int, error) {
		pods, err := e.Pods(t.Context(), key)
		return len(pods), err
	}, "60s", "200ms").Should(BeZero())
	t.Logf("the Pod was gone after %.1f s", time.Since(begin).Seconds())
	kinds := "pods,services,persistentvolumeclaims,secrets,serviceaccounts,roles,rolebindings,leases,certificates,issuers"
	g.Eventually(func() (string, error) {
		return e.Kubectl(t.Context(), "-n", key.Namespace, "get", kinds, "-l", api.LabelCluster+"="+key.Name, "-o", "name")
	}, "60s", "500ms").Should(BeEmpty())
	c := &api.Cluster{}
	if err := e.Client.Get(t.Context(), key, c); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the Cluster: %v", err)
	}
}
