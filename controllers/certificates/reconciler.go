package certificates

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/scope"
)

// Manager is the field manager of everything that this package writes.
const Manager = "cnmsql-certificates"

// recheckInstalled is how long to wait before cert-manager is looked for again.
const recheckInstalled = time.Minute

// Options configure the reconciler.
type Options struct {
	// MaxConcurrentReconciles is how many Clusters are worked on at once; 0 means one.
	MaxConcurrentReconciles int
}

// Reconciler keeps the certificates of Clusters.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server itself.
	Live   client.Reader
	Events events.EventRecorder
	// CertManager tells whether cert-manager's kinds are served, and from then on lets their changes wake
	// the reconciler.
	CertManager func() (installed bool, err error)
}

// SetupWithManager registers the reconciler, whether or not cert-manager is installed.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Events: mgr.GetEventRecorder(Manager)}
	c, err := ctrl.NewControllerManagedBy(mgr).
		Named("certificates").
		For(&api.Cluster{}, builder.WithPredicates(scope.Changed(scope.Members))).
		Owns(&corev1.Pod{}, builder.WithPredicates(scope.Deleted)).
		WithOptions(scope.ControllerOptions(o.MaxConcurrentReconciles)).
		Build(r)
	if err != nil {
		return fmt.Errorf("setting up the certificates reconciler: %w", err)
	}
	r.CertManager = newWatcher(mgr, c).ready
	return nil
}

// Reconcile asks for the certificates of one Cluster and shows which are there.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c, err := scope.Cluster(ctx, r.Client, req.NamespacedName)
	if c == nil {
		return ctrl.Result{}, err
	}
	installed, err := r.CertManager()
	if err != nil {
		return ctrl.Result{}, err
	}
	if !installed {
		return ctrl.Result{RequeueAfter: recheckInstalled}, r.show(ctx, c, c.Status.Certificates, absent())
	}
	return r.act(ctx, c)
}
