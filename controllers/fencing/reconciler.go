package fencing

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/scope"
)

// staleAgain is when to look again at a Cluster that had changed since it was read.
const staleAgain = 200 * time.Millisecond

// Manager is the field manager of everything that this package writes.
const Manager = "cnmsql-fencing"

// Options configure the reconciler.
type Options struct {
	// MaxConcurrentReconciles is how many Clusters are worked on at once; 0 means one.
	MaxConcurrentReconciles int
}

// Reconciler keeps status.fencedInstances.
type Reconciler struct {
	Client client.Client
	Events events.EventRecorder
}

// SetupWithManager registers the reconciler.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{Client: mgr.GetClient(), Events: mgr.GetEventRecorder(Manager)}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("fencing").
		For(&api.Cluster{}, builder.WithPredicates(predicate.Or(scope.Changed(lookedAt), reworded))).
		Owns(&corev1.Pod{}, builder.WithPredicates(predicate.NewPredicateFuncs(asks))).
		WithOptions(scope.ControllerOptions(o.MaxConcurrentReconciles)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the fencing reconciler: %w", err)
	}
	return nil
}

// lookedAt are the parts of the status that matter here.
func lookedAt(s *api.ClusterStatus) any {
	return []any{s.InstanceNames, s.CurrentPrimary, s.FencedInstances}
}

// reworded lets an update of a Cluster through that changes the annotation.
var reworded = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld.GetAnnotations()[api.AnnotationFencing] != e.ObjectNew.GetAnnotations()[api.AnnotationFencing]
}}

// Reconcile brings one Cluster's status into line with what is asked for.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	c, err := scope.Cluster(ctx, r.Client, req.NamespacedName)
	if c == nil {
		return ctrl.Result{}, err
	}
	pods, err := r.asking(ctx, c)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = r.act(ctx, c, pods, decide(c, names(pods)))
	if apierrors.IsConflict(err) {
		// Somebody else wrote to the Cluster since it was read, and the cache will show it.
		return ctrl.Result{RequeueAfter: staleAgain}, nil
	}
	return ctrl.Result{}, err
}
