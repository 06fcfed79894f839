package suite

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
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

// needNodes skips a test that the lab is too small for.
func needNodes(t *testing.T, e *framework.Environment, n int) {
	t.Helper()
	nodes := &corev1.NodeList{}
	must(t, e.Client.List(t.Context(), nodes))
	if len(nodes.Items) < n {
		t.Skipf("the lab has %d node(s); this needs %d (make lab-up NODES=%d)", len(nodes.Items), n, n)
	}
}

// The node of the primary is emptied for maintenance, as its administrator does it: the role moves in a switchover, then
// the budget lets the Pod go.
func TestADrainedNodeLosesNothing(t *testing.T) {
	e, key := shared(t)
	needNodes(t, e, 3)
	before := status(t, e, key).Status
	drained := pod(t, e, key, before.CurrentPrimary)
	uncordon := func(ctx context.Context) {
		_, err := e.Kubectl(ctx, "uncordon", drained.Spec.NodeName)
		must(t, err)
	}
	defer func() { uncordon(context.WithoutCancel(t.Context())) }()
	gap := whileWriting(t, e, key, func() {
		_, err := e.Kubectl(t.Context(), "drain", drained.Spec.NodeName, "--ignore-daemonsets", "--delete-emptydir-data",
			"--pod-selector", api.LabelCluster+"="+key.Name, "--timeout", "3m")
		must(t, err)
		after := status(t, e, key).Status
		if after.CurrentPrimary == drained.Name || after.CurrentPrimaryGeneration != before.CurrentPrimaryGeneration+1 {
			t.Errorf("the primary is %s in generation %d; before %s in %d", after.CurrentPrimary, after.CurrentPrimaryGeneration, before.CurrentPrimary, before.CurrentPrimaryGeneration)
		}
		if after.LastFailoverGeneration != before.LastFailoverGeneration {
			t.Error("the role moved in a failover, not in a switchover")
		}
		uncordon(t.Context())
		ready(t, e, key)
	})
	if gap > 15*time.Second {
		t.Errorf("writes stood still for %s: nobody has to wait for a lease", gap)
	}
}

// The node of the primary is unplugged: the old primary makes itself read-only before another is writable, and
// when the node comes back it follows.
func TestANodeThatIsCutOffLosesNothing(t *testing.T) {
	e, key := shared(t)
	needNodes(t, e, 3)
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
