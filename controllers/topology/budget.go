package topology

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/apply"
	"cnmsql.co/operator/controllers/objects"
)

// budget keeps the disruption budget of the instances that there are, after everything else: what is wrong with it
// keeps no instance from being looked after.
func (r *Reconciler) budget(ctx context.Context, read *api.Cluster, status *api.ClusterStatus) error {
	if read.DeletionTimestamp != nil {
		return nil
	}
	c := read.DeepCopy()
	c.Default()
	status.DeepCopyInto(&c.Status)
	if pdb := objects.PDB(c); pdb != nil {
		if _, err := apply.Apply(ctx, r.Client, Manager, c, pdb); err != nil {
			return fmt.Errorf("the disruption budget: %w", err)
		}
		return nil
	}
	there := &policyv1.PodDisruptionBudget{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.PDBName()}, there)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(there, c) {
		return nil
	}
	if err == nil {
		err = client.IgnoreNotFound(r.Client.Delete(ctx, there, client.Preconditions{UID: &there.UID}))
	}
	if err != nil {
		return fmt.Errorf("removing the disruption budget: %w", err)
	}
	return nil
}
