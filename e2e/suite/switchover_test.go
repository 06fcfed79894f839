package suite

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestSwitchoverLosesNothing(t *testing.T) {
	e, key := shared(t)
	before, to := status(t, e, key), replica(t, e, key)
	whileWriting(t, e, key, func() {
		out, err := e.Plugin(t.Context(), key.Namespace, "promote", key.Name, to, "--wait")
		must(t, err)
		t.Log(out)
	})
	after := status(t, e, key)
	if after.Status.CurrentPrimary != to || after.Status.CurrentPrimaryGeneration != before.Status.CurrentPrimaryGeneration+1 {
		t.Errorf("primary %s in generation %d, before %d", after.Status.CurrentPrimary, after.Status.CurrentPrimaryGeneration, before.Status.CurrentPrimaryGeneration)
	}
	NewWithT(t).Eventually(func() []string { return endpoints(t, e, named(key, after.ServiceName("rw"))) }, "10s", "100ms").Should(Equal([]string{to}))
}

// A target that does not exist is put back, and an event says why; the plugin does not even ask.
func TestSwitchoverToNobodyIsRefused(t *testing.T) {
	e, key := shared(t)
	before := status(t, e, key)
	_, err := e.Plugin(t.Context(), key.Namespace, "promote", key.Name, "9")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("it has: c1-1")))
	_, err = e.Kubectl(t.Context(), "-n", key.Namespace, "patch", "mysql", key.Name, "--subresource=status", "--type=merge", "-p", `{"status":{"targetPrimary":"c1-9"}}`)
	must(t, err)
	g := NewWithT(t)
	g.Eventually(func() string { return status(t, e, key).Status.TargetPrimary }, "10s", "50ms").Should(Equal(before.Status.CurrentPrimary))
	g.Eventually(func() string { return events(t, e, key) }, "10s", "200ms").Should(ContainSubstring("SwitchoverRefused"))
	ready(t, e, key)
	if after := status(t, e, key); after.Status.CurrentPrimaryGeneration != before.Status.CurrentPrimaryGeneration {
		t.Errorf("generation %d, before %d", after.Status.CurrentPrimaryGeneration, before.Status.CurrentPrimaryGeneration)
	}
}
