package topology

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "cnmsql.co/operator/api/v1alpha1"
)

// cordoned lets through that a node was cordoned or uncordoned.
var cordoned = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*corev1.Node)
		after, okAfter := e.ObjectNew.(*corev1.Node)
		return okBefore && okAfter && before.Spec.Unschedulable != after.Spec.Unschedulable
	},
}

// clustersOn are the Clusters with a Pod on a node.
func (r *Reconciler) clustersOn(ctx context.Context, node client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.HasLabels{api.LabelCluster}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot tell which Clusters have Pods on the node", "node", node.GetName())
		return nil
	}
	seen := map[types.NamespacedName]bool{}
	var all []reconcile.Request
	for i := range pods.Items {
		cluster, owned := clusterOf(&pods.Items[i])
		if owned && pods.Items[i].Spec.NodeName == node.GetName() && !seen[cluster] {
			seen[cluster] = true
			all = append(all, reconcile.Request{NamespacedName: cluster})
		}
	}
	return all
}

// isCordoned tells that no Pod may be placed any more on a node.
func (r *Reconciler) isCordoned(ctx context.Context, name string) (bool, error) {
	if r.Nodes == nil {
		return false, nil
	}
	node := &corev1.Node{}
	err := r.Nodes.Get(ctx, client.ObjectKey{Name: name}, node)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading node %s: %w", name, err)
	}
	return node.Spec.Unschedulable, nil
}
