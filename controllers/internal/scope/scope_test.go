package scope

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/fakeapi"
)

func TestCacheHoldsOnlyWhatCarriesAClustersLabel(t *testing.T) {
	options, err := Cache()
	if err != nil {
		t.Fatal(err)
	}
	kinds := 0
	for o, by := range options.ByObject {
		switch o.(type) {
		case *corev1.Secret, *corev1.Pod, *corev1.ConfigMap, *corev1.Service:
			kinds++
		}
		if by.Label == nil || by.Label.Matches(labels.Set{"app": "foreign"}) || !by.Label.Matches(labels.Set{api.LabelCluster: "c1"}) {
			t.Errorf("%T is restricted to %v", o, by.Label)
		}
	}
	if kinds != 4 {
		t.Errorf("%d of the 4 kinds that are many are restricted", kinds)
	}
}

// A kind with namespaces of its own would leave the default ones; none may.
func TestCacheOfTwoNamespacesLeavesAThirdAlone(t *testing.T) {
	options, err := Cache("shop", "till")
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(options.DefaultNamespaces)); !slices.Equal(got, []string{"shop", "till"}) {
		t.Errorf("it watches %v", got)
	}
	for namespace, config := range options.DefaultNamespaces {
		if config.LabelSelector != nil || config.FieldSelector != nil {
			t.Errorf("not everything of %s: %+v", namespace, config)
		}
	}
	for o, by := range options.ByObject {
		if by.Namespaces != nil {
			t.Errorf("%T is watched in %v", o, by.Namespaces)
		}
	}
	if all, err := Cache(); err != nil || all.DefaultNamespaces != nil {
		t.Errorf("without namespaces it is limited to %v, %v", all.DefaultNamespaces, err)
	}
}

func TestOfASecretOnlyItsIdentityIsKept(t *testing.T) {
	m := SecretMetadata()
	m.Name, m.Namespace, m.ResourceVersion, m.UID = "mine", "shop", "7", "uid"
	m.Annotations = map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "the content again"}
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	kept, err := identity(m)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := kept.(*metav1.PartialObjectMetadata)
	if got.Annotations != nil || got.ManagedFields != nil || got.Name != "mine" || got.ResourceVersion != "7" || got.UID != "uid" {
		t.Errorf("kept %+v", got)
	}
}

func TestOnlyChangesThatMatterWakeAReconciler(t *testing.T) {
	old := &api.Cluster{ObjectMeta: metav1.ObjectMeta{UID: "uid", Generation: 1, ResourceVersion: "1"}}
	for _, tc := range []struct {
		name   string
		change func(*api.Cluster)
		wakes  bool
	}{
		{"somebody else's status", func(c *api.Cluster) { c.Status.GTIDExecutedByInstance = map[string]string{"c1-1": "x"} }, false},
		{"a condition", func(c *api.Cluster) { c.Status.Conditions = []metav1.Condition{{Type: "Ready"}} }, false},
		{"an annotation", func(c *api.Cluster) { c.Annotations = map[string]string{"a": "b"} }, false},
		{"the specification", func(c *api.Cluster) { c.Generation = 2 }, true},
		{"the instances", func(c *api.Cluster) { c.Status.InstanceNames = []string{"c1-1"} }, true},
		{"the primary", func(c *api.Cluster) { c.Status.CurrentPrimary = "c1-1" }, true},
		{"a change of primary", func(c *api.Cluster) { c.Status.PrimaryTransition = &api.PrimaryTransition{To: "c1-1"} }, true},
		{"another Cluster of the name", func(c *api.Cluster) { c.UID = "other" }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			after := old.DeepCopy()
			after.ResourceVersion = "2"
			tc.change(after)
			if got := Changed(Members).Update(event.UpdateEvent{ObjectOld: old, ObjectNew: after}); got != tc.wakes {
				t.Errorf("wakes: %v", got)
			}
		})
	}
}

func TestOfPodsOnlyTheEndWakes(t *testing.T) {
	if Deleted.Create(event.CreateEvent{}) || Deleted.Update(event.UpdateEvent{}) || Deleted.Generic(event.GenericEvent{}) {
		t.Error("more than the end wakes")
	}
	if !Deleted.Delete(event.DeleteEvent{}) {
		t.Error("the end does not wake")
	}
}

func TestClusterIsReadWithItsDefaults(t *testing.T) {
	s := fakeapi.New(t, &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1"}})
	c, err := Cluster(t.Context(), s, client.ObjectKey{Namespace: "shop", Name: "c1"})
	if err != nil || c.Spec.ImageName != api.DefaultImageName || c.Spec.Bootstrap.InitDB == nil {
		t.Errorf("%+v %v", c, err)
	}
	if c, err := Cluster(t.Context(), s, client.ObjectKey{Namespace: "shop", Name: "gone"}); c != nil || err != nil {
		t.Errorf("%v %v", c, err)
	}
}
