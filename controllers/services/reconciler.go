package services

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/scope"
)

// Manager is the field manager of everything that this package writes.
const Manager = "cnmsql-services"

// Options configure the reconciler.
type Options struct {
	// MaxConcurrentReconciles is how many Clusters are worked on at once; 0 means one.
	MaxConcurrentReconciles int
}

// Reconciler keeps the Services of Clusters.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server itself.
	Live   client.Reader
	Events events.EventRecorder
}

// SetupWithManager registers the reconciler.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(Manager)}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("services").
		For(&api.Cluster{}, builder.WithPredicates(scope.Changed(scope.Members))).
		Owns(&corev1.Service{}).
		Owns(&corev1.Pod{}, builder.WithPredicates(scope.Deleted)).
		WithOptions(scope.ControllerOptions(o.MaxConcurrentReconciles)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the services reconciler: %w", err)
	}
	return nil
}

// Reconcile makes the Services of one Cluster as they should be.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c, err := scope.Cluster(ctx, r.Client, req.NamespacedName)
	if c == nil {
		return ctrl.Result{}, err
	}
	return r.act(ctx, c, wanted(c))
}
