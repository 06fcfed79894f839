package scope

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Cluster reads a Cluster and fills its defaults in memory. It is nil when there is none or when it is being
// deleted: then nothing is to be done.
func Cluster(ctx context.Context, r client.Reader, key client.ObjectKey) (*api.Cluster, error) {
	c := &api.Cluster{}
	err := r.Get(ctx, key, c)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Cluster %s: %w", key, err)
	}
	if c.DeletionTimestamp != nil {
		return nil, nil
	}
	c = c.DeepCopy()
	c.Default()
	return c, nil
}

// Changed lets an update of a Cluster through when its specification changed, or what the reconciler looks
// at in its status. So a write of somebody else's status fields causes no reconcile.
func Changed(lookedAt func(*api.ClusterStatus) any) predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*api.Cluster)
		after, okAfter := e.ObjectNew.(*api.Cluster)
		if !okBefore || !okAfter || before.Generation != after.Generation || before.UID != after.UID {
			return true
		}
		return !equality.Semantic.DeepEqual(lookedAt(&before.Status), lookedAt(&after.Status))
	}}
}

// Deleted lets through only that an object is gone.
var Deleted = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	UpdateFunc:  func(event.UpdateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// Members are the parts of the status that decide which instances there are, and which were removed.
func Members(s *api.ClusterStatus) any {
	var from, to string
	if t := s.PrimaryTransition; t != nil {
		from, to = t.From, t.To
	}
	return []any{s.InstanceNames, s.LatestGeneratedNode, s.CurrentPrimary, from, to}
}

// RecheckForeign is how long a reconciler waits before it looks again whether a name that somebody else's
// object takes is free: such objects are not watched.
const RecheckForeign = time.Minute

// ControllerOptions are those of every reconciler: concurrency (0 means one Cluster at a time), and a panic
// over one Cluster does not stop the others.
func ControllerOptions(concurrency int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: concurrency, RecoverPanic: new(true)}
}
