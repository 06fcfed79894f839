package lease

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/scope"
)

// observe reads the Lease; nil when there is none.
func (r *Reconciler) observe(ctx context.Context, c *api.Cluster) (*coordinationv1.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.LeaseName()}, lease)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Lease %s: %w", c.LeaseName(), err)
	}
	return lease, nil
}

// origin is what decides who holds a Lease that is made now.
type origin struct {
	cluster *api.Cluster
	// primaryUID is of the current primary's Pod; empty when there is none.
	primaryUID types.UID
}

// observeOrigin reads it from the API server itself: a cached Cluster could have had no primary yet. It is
// nil when the Cluster is gone.
func (r *Reconciler) observeOrigin(ctx context.Context, key client.ObjectKey) (*origin, error) {
	c, err := scope.Cluster(ctx, r.Live, key)
	if c == nil {
		return nil, err
	}
	o := &origin{cluster: c}
	if c.Status.CurrentPrimary == "" {
		return o, nil
	}
	pod := &corev1.Pod{}
	err = r.Live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Status.CurrentPrimary}, pod)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Pod %s: %w", c.Status.CurrentPrimary, err)
	}
	o.primaryUID = pod.UID
	return o, nil
}
