package cmd

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/controllers/topology/facts"
)

// watchedLease is the primary Lease as it was last seen, and since when.
type watchedLease struct {
	facts.LeaseRecord
	since time.Time
}

// look reads the primary Lease. It ages from when this program first saw it as it is, by its own clock.
func (w *observer) look(ctx context.Context, c *api.Cluster) (core.Lease, error) {
	lease := &coordinationv1.Lease{}
	err := w.c.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.LeaseName()}, lease)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(lease, c) {
		w.lease = watchedLease{}
		return core.Lease{}, nil
	}
	if err != nil {
		return core.Lease{}, fmt.Errorf("reading Lease %s: %w", c.LeaseName(), err)
	}
	now := w.o.Now()
	if next := facts.LeaseOf(lease); w.lease.since.IsZero() || !next.Same(w.lease.LeaseRecord) {
		w.lease = watchedLease{next, now}
	}
	return w.lease.Snapshot(now.Sub(w.lease.since)), nil
}
