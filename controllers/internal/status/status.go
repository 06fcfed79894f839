package status

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Fields are what one small reconciler owns of the status. Nil or absent means: not there.
type Fields struct {
	// Conditions need Type, Status, Reason and Message. ObservedGeneration and LastTransitionTime are filled.
	Conditions []metav1.Condition

	PrimaryLease *api.PrimaryLeaseStatus
	SemiSync     *api.SemiSyncStatus
	Certificates *api.CertificatesStatus
}

// Owns names the optional fields of Fields that a reconciler answers for.
type Owns struct {
	PrimaryLease, SemiSync, Certificates bool
}

// Patch writes the difference between the status of base and that of changed, which must be copies of one
// object, and tells whether it wrote. A conflict means that base is stale and that nothing was written.
// changed then holds what the API server answered.
func Patch(ctx context.Context, c client.Client, manager string, base, changed *api.Cluster) (bool, error) {
	if equality.Semantic.DeepEqual(base.Status, changed.Status) {
		return false, nil
	}
	// Only the status may differ: defaults that were filled in memory are not to be sent.
	from := base.DeepCopy()
	to := base.DeepCopy()
	changed.Status.DeepCopyInto(&to.Status)
	patch := client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, to, patch, client.FieldOwner(manager)); err != nil {
		return false, fmt.Errorf("writing the status of Cluster %s/%s: %w", base.Namespace, base.Name, err)
	}
	to.Status.DeepCopyInto(&changed.Status)
	changed.ResourceVersion = to.ResourceVersion
	return true, nil
}

// Apply writes exactly the given fields under manager and tells whether it wrote. cluster is the Cluster as
// last read; it is not changed. owns says which optional fields the manager answers for, so that an absent
// one is seen to differ from a present one.
func Apply(ctx context.Context, c client.Client, manager string, cluster *api.Cluster, owns Owns, f Fields) (bool, error) {
	conditions := complete(cluster, f.Conditions)
	if same(cluster, owns, f, conditions) {
		return false, nil
	}
	content := &api.ClusterStatus{Conditions: conditions, PrimaryLease: f.PrimaryLease, SemiSync: f.SemiSync, Certificates: f.Certificates}
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(content)
	if err != nil {
		return false, fmt.Errorf("converting the status of Cluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": raw}}
	u.SetGroupVersionKind(api.GroupVersion.WithKind("Cluster"))
	u.SetNamespace(cluster.Namespace)
	u.SetName(cluster.Name)
	u.SetUID(cluster.UID)
	err = c.Status().Apply(ctx, client.ApplyConfigurationFromUnstructured(u), client.FieldOwner(manager), client.ForceOwnership)
	if err != nil {
		return false, fmt.Errorf("applying the status of Cluster %s/%s: %w", cluster.Namespace, cluster.Name, err)
	}
	return true, nil
}

// complete fills the generation, and the time of the last change of the condition's status.
func complete(cluster *api.Cluster, conditions []metav1.Condition) []metav1.Condition {
	out := make([]metav1.Condition, 0, len(conditions))
	now := metav1.Now().Rfc3339Copy()
	for _, condition := range conditions {
		condition.ObservedGeneration = cluster.Generation
		condition.LastTransitionTime = now
		if old := meta.FindStatusCondition(cluster.Status.Conditions, condition.Type); old != nil && old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		out = append(out, condition)
	}
	return out
}

func same(cluster *api.Cluster, owns Owns, f Fields, conditions []metav1.Condition) bool {
	for i := range conditions {
		old := meta.FindStatusCondition(cluster.Status.Conditions, conditions[i].Type)
		if old == nil || !equality.Semantic.DeepEqual(*old, conditions[i]) {
			return false
		}
	}
	s := &cluster.Status
	return (!owns.PrimaryLease || equality.Semantic.DeepEqual(s.PrimaryLease, f.PrimaryLease)) &&
		(!owns.SemiSync || equality.Semantic.DeepEqual(s.SemiSync, f.SemiSync)) &&
		(!owns.Certificates || equality.Semantic.DeepEqual(s.Certificates, f.Certificates))
}

// Changed tells whether condition says something else than the Cluster's status does: worth an event.
func Changed(cluster *api.Cluster, condition metav1.Condition) bool {
	old := meta.FindStatusCondition(cluster.Status.Conditions, condition.Type)
	return old == nil || old.Status != condition.Status || old.Reason != condition.Reason || old.Message != condition.Message
}
