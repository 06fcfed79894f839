package credentials

import (
	"context"
	"fmt"

	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/scope"
)

// Manager is the field manager of everything that this package writes.
const Manager = "cnmsql-credentials"

// Options configure the reconciler.
type Options struct {
	// Secrets is the cache of Secrets' metadata, from scope.Secrets.
	Secrets cache.Cache
	// MaxConcurrentReconciles is how many Clusters are worked on at once; 0 means one.
	MaxConcurrentReconciles int
}

// Reconciler keeps the Secrets of Clusters.
type Reconciler struct {
	Client client.Client
	// Live reads from the API server itself.
	Live   client.Reader
	Events events.EventRecorder
	// Password makes a new password of at most 32 characters.
	Password func() string
}

// SetupWithManager registers the reconciler.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(),
		Events: mgr.GetEventRecorder(Manager), Password: generate,
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &api.Cluster{}, indexSecrets, secretNames); err != nil {
		return fmt.Errorf("indexing Clusters by their Secrets: %w", err)
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("credentials").
		For(&api.Cluster{}, builder.WithPredicates(scope.Changed(established))).
		WatchesRawSource(secretSource(o.Secrets, mgr.GetClient())).
		WithOptions(scope.ControllerOptions(o.MaxConcurrentReconciles)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the credentials reconciler: %w", err)
	}
	return nil
}

// Reconcile makes the Secrets of one Cluster complete, or says what is missing.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	// Not from the cache: an old copy could say that there is no primary yet.
	c, err := scope.Cluster(ctx, r.Live, req.NamespacedName)
	if c == nil {
		return ctrl.Result{}, err
	}
	seen, err := r.observe(ctx, c)
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.act(ctx, c, seen, decide(c, seen))
}
