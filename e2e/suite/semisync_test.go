package suite

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	api "cnmsql.co/operator/api/v1alpha1"
)

// With dataDurability: preferred commits wait for as many replicas as there are to acknowledge, and for all that are asked
// for again once these are back. Clients hardly notice.
func TestCommitsWaitForAsManyReplicasAsThereAre(t *testing.T) {
	e, key := shared(t)
	g := NewWithT(t)
	ask := func(n string) {
		_, err := e.Kubectl(t.Context(), "-n", key.Namespace, "patch", "mysql", key.Name, "--type=merge", "-p", `{"spec":{"minSyncReplicas":`+n+`}}`)
		must(t, err)
	}
	effective := func() int32 {
		if s := status(t, e, key).Status.SemiSync; s != nil {
			return s.Effective
		}
		return 0
	}
	ask("2")
	defer ask("1")
	g.Eventually(effective, "30s", "100ms").Should(BeEquivalentTo(2))
	name := replica(t, e, key)
	gap := whileWriting(t, e, key, func() {
		plugin(t, e, key, "fence", "on", key.Name, name)
		g.Eventually(effective, "20s", "100ms").Should(BeEquivalentTo(1))
		g.Eventually(func() string { return told(status(t, e, key), api.ConditionSemiSyncReady) }, "20s", "100ms").Should(HavePrefix(api.ReasonSemiSyncLowered + ": "))
		plugin(t, e, key, "fence", "off", key.Name, name)
		ready(t, e, key)
		g.Eventually(effective, "30s", "100ms").Should(BeEquivalentTo(2))
	})
	if gap > 5*time.Second {
		t.Errorf("writes stood still for %s", gap)
	}
}
