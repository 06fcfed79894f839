package lease

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/scope"
)

// Manager is the field manager of everything that this package writes.
const Manager = "cnmsql-lease"

// Options configure the reconciler.
type Options struct {
	// MaxConcurrentReconciles is how many Clusters are worked on at once; 0 means one.
	MaxConcurrentReconciles int
}

// Reconciler keeps the Leases and the instances' identities.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server itself.
	Live   client.Reader
	Events events.EventRecorder
	Now    func() time.Time
}

// SetupWithManager registers the reconciler.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(Manager), Now: time.Now}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("lease").
		For(&api.Cluster{}, builder.WithPredicates(scope.Changed(scope.Members))).
		Owns(&coordinationv1.Lease{}, builder.WithPredicates(holderChanged)).
		Owns(&corev1.ServiceAccount{}).
		Owns(&rbacv1.Role{}).
		Owns(&rbacv1.RoleBinding{}).
		Owns(&corev1.Pod{}, builder.WithPredicates(scope.Deleted)).
		WithOptions(scope.ControllerOptions(o.MaxConcurrentReconciles)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the lease reconciler: %w", err)
	}
	return nil
}

// Reconcile makes what is missing and shows the holder.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c, err := scope.Cluster(ctx, r.Client, req.NamespacedName)
	if c == nil {
		return ctrl.Result{}, err
	}
	seen, err := r.observe(ctx, c)
	if err != nil {
		return ctrl.Result{}, err
	}
	return r.act(ctx, c, seen)
}
