package suite

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// awayFromHelpers moves the primary to a node where neither the operator nor the cluster's DNS runs, and
// returns both; false when there is no such node.
func awayFromHelpers(t *testing.T, e *framework.Environment, key client.ObjectKey) (primary, node string, found bool) {
	t.Helper()
	busy := map[string]bool{}
	all := &corev1.PodList{}
	must(t, e.Client.List(t.Context(), all))
	for _, p := range all.Items {
		if p.Namespace == framework.OperatorNamespace || p.Namespace == "kube-system" {
			busy[p.Spec.NodeName] = true
		}
	}
	pods, err := e.Pods(t.Context(), key)
	must(t, err)
	for _, p := range pods {
		if busy[p.Spec.NodeName] {
			continue
		}
		_, err := e.Plugin(t.Context(), key.Namespace, "promote", key.Name, p.Name, "--wait")
		must(t, err)
		ready(t, e, key)
		return p.Name, p.Spec.NodeName, true
	}
	return "", "", false
}

// The node of the primary is unplugged: the old primary makes itself read-only before another is writable, and
// when the node comes back it follows.
func TestANodeThatIsCutOffLosesNothing(t *testing.T) {
	e, key := shared(t)
	nodes := &corev1.NodeList{}
	must(t, e.Client.List(t.Context(), nodes))
	if len(nodes.Items) < 3 {
		t.Skipf("the lab has %d node(s); this needs 3 (make lab-up NODES=3)", len(nodes.Items))
	}
	primary, node, found := awayFromHelpers(t, e, key)
	if !found {
		t.Skip("the operator or the cluster's DNS runs on every node with an instance")
	}
	healed := false
	heal := func() {
		if !healed {
			healed = true
			must(t, e.Lab.Node(context.Background(), "heal", node))
		}
	}
	defer heal()
	whileWriting(t, e, key, func() {
		must(t, e.Lab.Node(t.Context(), "cut", node))
		_, err := e.AwaitPrimary(t.Context(), key, primary, readyWithin)
		must(t, err)
		heal()
	})
}
