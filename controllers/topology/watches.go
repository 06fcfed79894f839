package topology

import (
	"context"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/observer"
	"cnmsql.co/operator/controllers/internal/scope"
	"cnmsql.co/operator/controllers/objects"
	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/controllers/topology/facts"
)

// Pauses after an error: the first, and the longest.
const (
	firstRetry   = 100 * time.Millisecond
	longestRetry = 10 * time.Second
)

// Options configure the reconciler.
type Options struct {
	// Instances reaches the instances' managers.
	Instances *observer.Observer
	// Secrets is the cache of Secrets' metadata, from scope.Secrets.
	Secrets cache.Cache
	// Nodes tells that the operator may read nodes: not where it works in some namespaces only.
	Nodes bool
	// OperatorImage is the image with the instance manager.
	OperatorImage string
	// MaxConcurrentReconciles is how many Clusters are worked on at once; 0 means one.
	MaxConcurrentReconciles int
}

// SetupWithManager registers the reconciler. Every Cluster is looked at once when the operator starts.
func SetupWithManager(mgr ctrl.Manager, o Options) error {
	r := &Reconciler{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Secrets: o.Secrets,
		Instances: o.Instances, Events: mgr.GetEventRecorder(Manager),
		Objects: objects.Options{OperatorImage: o.OperatorImage},
		Decide:  core.Decide, Now: time.Now, NewAttempt: newAttempt,
	}
	options := scope.ControllerOptions(o.MaxConcurrentReconciles)
	options.RateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, longestRetry)
	b := ctrl.NewControllerManagedBy(mgr)
	if o.Nodes {
		r.Nodes = mgr.GetClient()
		b = b.Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.clustersOn), builder.WithPredicates(cordoned))
	}
	err := b.
		Named("topology").
		For(&api.Cluster{}, builder.WithPredicates(clusterChanged)).
		Owns(&corev1.Pod{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Owns(&policyv1.PodDisruptionBudget{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.PersistentVolumeClaim{}, builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})).
		Watches(&coordinationv1.Lease{}, r.leaseHandler()).
		WatchesRawSource(secretSource(o.Secrets)).
		WatchesRawSource(o.Instances.Changes()).
		WithOptions(options).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the topology reconciler: %w", err)
	}
	return nil
}

// clusterChanged lets through what others change of a Cluster: its specification and metadata, and the
// parts of the status that are not this reconciler's alone. Its own writes cause no reconcile.
var clusterChanged = predicate.Or[client.Object](
	scope.Changed(othersStatus),
	predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return true },
		DeleteFunc: func(event.DeleteEvent) bool { return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations()) ||
				!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
				(e.ObjectOld.GetDeletionTimestamp() == nil) != (e.ObjectNew.GetDeletionTimestamp() == nil)
		},
	},
)

// othersStatus is what others write and a rule looks at.
func othersStatus(s *api.ClusterStatus) any {
	looked := []any{
		s.CurrentPrimary, s.CurrentPrimaryGeneration, s.PromotionGTIDExecuted, s.CurrentPrimaryServerUUID,
		s.TargetPrimary, s.FencedInstances,
	}
	if s.SemiSync != nil {
		looked = append(looked, s.SemiSync.Effective)
	}
	for _, kind := range []string{api.ConditionCredentialsReady, api.ConditionCertificatesReady} {
		if c := meta.FindStatusCondition(s.Conditions, kind); c != nil {
			looked = append(looked, kind, c.Status, c.Reason, c.Message)
		}
	}
	return looked
}

// leaseHandler notes every change of a Lease, which is how expiry is judged, and wakes the Cluster only when
// the holder or a handoff changed.
func (r *Reconciler) leaseHandler() handler.EventHandler {
	note := func(o client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request], wake bool) {
		lease, ok := o.(*coordinationv1.Lease)
		cluster, owned := clusterOf(o)
		if !ok || !owned {
			return
		}
		r.leases.saw(cluster, lease, r.Now())
		if wake {
			q.Add(reconcile.Request{NamespacedName: cluster})
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			note(e.Object, q, true)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			note(e.ObjectNew, q, holderChanged(e.ObjectOld, e.ObjectNew))
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if cluster, owned := clusterOf(e.Object); owned {
				r.leases.gone(cluster)
				q.Add(reconcile.Request{NamespacedName: cluster})
			}
		},
	}
}

func holderChanged(before, after client.Object) bool {
	a, okA := before.(*coordinationv1.Lease)
	b, okB := after.(*coordinationv1.Lease)
	if !okA || !okB || a.UID != b.UID {
		return true
	}
	return facts.LeaseOf(a).Holder != facts.LeaseOf(b).Holder || !maps.Equal(a.Annotations, b.Annotations)
}

// clusterOf is the Cluster that controls an object.
func clusterOf(o client.Object) (types.NamespacedName, bool) {
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.Kind != "Cluster" || owner.APIVersion != api.GroupVersion.String() {
		return types.NamespacedName{}, false
	}
	return types.NamespacedName{Namespace: o.GetNamespace(), Name: owner.Name}, true
}

// secretSource wakes a Cluster when one of the Secrets that were made for it appears, changes or goes.
func secretSource(secrets cache.Cache) source.Source {
	return source.Kind(secrets, scope.SecretMetadata(),
		handler.TypedEnqueueRequestsFromMapFunc(func(_ context.Context, m *metav1.PartialObjectMetadata) []reconcile.Request {
			name := m.Labels[api.LabelCluster]
			if name == "" {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: m.Namespace, Name: name}}}
		}),
		predicate.TypedResourceVersionChangedPredicate[*metav1.PartialObjectMetadata]{})
}
