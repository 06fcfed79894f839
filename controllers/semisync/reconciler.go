package semisync

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/scope"
	"cnmsql.co/operator/instance/protocol"
)

// Manager is the field manager of everything that this package writes.
const Manager = "cnmsql-semisync"

// Instances is what this package needs of the instances' managers.
type Instances interface {
	// Report is the last one of an instance, with its age; false when there is none.
	Report(cluster types.NamespacedName, instance string) (report protocol.Report, age time.Duration, ok bool)
	// Unasked tells that nobody knows yet whether an instance answers.
	Unasked(cluster types.NamespacedName, instance string) bool
	// SetSemiSync asks an instance for a number of acknowledgements (PUT protocol.PathSemiSync).
	SetSemiSync(ctx context.Context, cluster types.NamespacedName, instance string, s protocol.SemiSyncSettings) error
}

// Options configure the reconciler.
type Options struct {
	// Instances reaches the instances' managers.
	Instances Instances
	// Events wakes a Cluster when a report of one of its instances changed.
	Events source.Source
	// MaxConcurrentReconciles is how many Clusters are worked on at once; 0 means one.
	MaxConcurrentReconciles int
}

// Reconciler keeps the number of acknowledgements.
type Reconciler struct {
	Client    client.Client
	Instances Instances

	Events events.EventRecorder

	mu     sync.Mutex
	memory map[types.NamespacedName]memory
}

// SetupWithManager registers the reconciler.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{Client: mgr.GetClient(), Instances: o.Instances, Events: mgr.GetEventRecorder(Manager)}
	b := ctrl.NewControllerManagedBy(mgr).
		Named("semisync").
		For(&api.Cluster{}, builder.WithPredicates(scope.Changed(lookedAt))).
		WithOptions(scope.ControllerOptions(o.MaxConcurrentReconciles))
	if o.Events != nil {
		b = b.WatchesRawSource(o.Events)
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("setting up the semisync reconciler: %w", err)
	}
	return nil
}

// lookedAt are the parts of the status that matter here.
func lookedAt(s *api.ClusterStatus) any {
	return []any{s.CurrentPrimary, s.CurrentPrimaryGeneration, s.InstanceNames, s.DivergedInstances}
}

// Reconcile compares one Cluster's servers with what is configured.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c, err := scope.Cluster(ctx, r.Client, req.NamespacedName)
	if c == nil {
		r.remember(req.NamespacedName, memory{})
		return ctrl.Result{}, err
	}
	return r.act(ctx, c, decide(r.observe(c)))
}
