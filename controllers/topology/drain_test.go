package topology

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	api "cnmsql.co/operator/api/v1alpha1"
)

func TestTheBudgetFollowsTheInstancesAndIsLeftAloneWhenItIsRight(t *testing.T) {
	c := aCluster()
	c.Status.InstanceNames = []string{"c1-1", "c1-2", "c1-3"}
	b := newBench(t, c)
	b.must()
	if got := b.Taken(); len(got) != 1 {
		t.Errorf("writes %q", got)
	}
	pdb := &policyv1.PodDisruptionBudget{}
	if err := b.Live.Get(t.Context(), shop, pdb); err != nil || pdb.Spec.MinAvailable.IntValue() != 2 {
		t.Fatalf("budget %+v, %v", pdb.Spec, err)
	}
	for range 3 {
		b.must()
		b.wrote()
	}
	b.change(func(c *api.Cluster) { c.Spec.EnablePDB = new(false) })
	b.must()
	b.wrote("delete *v1.PodDisruptionBudget c1")
	if err := b.Live.Get(t.Context(), shop, pdb); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestAForeignBudgetIsLeftAlone(t *testing.T) {
	c := aCluster()
	c.Spec.EnablePDB = new(false)
	b := newBench(t, c, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1"}})
	b.must()
	b.wrote()
}

func (b *bench) change(how func(*api.Cluster)) {
	b.t.Helper()
	c := &api.Cluster{}
	if err := b.Live.Get(b.t.Context(), shop, c); err != nil {
		b.t.Fatal(err)
	}
	how(c)
	if err := b.Server.Client.Update(b.t.Context(), c); err != nil {
		b.t.Fatal(err)
	}
	b.Taken()
}

func TestACordonedNodeIsSeenAndWakesItsClusters(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Spec: corev1.NodeSpec{Unschedulable: true}}
	on, off := aPod("c1-1"), aPod("c1-2")
	on.Spec.NodeName, off.Spec.NodeName = "n1", "n2"
	b := newBench(t, aCluster(), on, off, node)
	b.must()
	if b.last().Instances[0].Pod.Cordoned {
		t.Error("an operator that may not read nodes has seen one")
	}
	b.r.Nodes = b.Live
	b.must()
	if s := b.last(); !s.Instances[0].Pod.Cordoned || s.Instances[1].Pod.Cordoned {
		t.Errorf("instances %+v %+v", s.Instances[0].Pod, s.Instances[1].Pod)
	}
	for name, want := range map[string]int{"n1": 1, "n3": 0} {
		if got := b.r.clustersOn(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}); len(got) != want || want == 1 && got[0].NamespacedName != shop {
			t.Errorf("%s wakes %v", name, got)
		}
	}
	before := node.DeepCopy()
	before.Spec.Unschedulable = false
	if !cordoned.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: node}) || cordoned.Update(event.UpdateEvent{ObjectOld: node, ObjectNew: client.Object(node)}) {
		t.Error("only that it is cordoned or uncordoned matters")
	}
}
