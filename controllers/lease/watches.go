package lease

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// holderChanged keeps renewals (every few seconds, for every Cluster) out of the queue.
var holderChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return holderOf(e.ObjectOld) != holderOf(e.ObjectNew)
}}

func holderOf(o client.Object) string {
	if l, ok := o.(*coordinationv1.Lease); ok && l.Spec.HolderIdentity != nil {
		return *l.Spec.HolderIdentity
	}
	return ""
}
