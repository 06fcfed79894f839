package credentials

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/scope"
)

// indexSecrets finds Clusters by the name of a Secret that they use, generated or the user's.
const indexSecrets = "credentials.secrets"

func secretNames(o client.Object) []string {
	c, ok := o.(*api.Cluster)
	if !ok {
		return nil
	}
	return []string{c.RootSecretName(), c.AppSecretName(), c.ReplicationSecretName(), c.ControlSecretName()}
}

// established is what of the status matters here: from then on nothing is generated.
func established(s *api.ClusterStatus) any {
	return (&api.Cluster{Status: *s}).Established()
}

// secretSource wakes the Clusters that use a Secret when it appears, changes or goes.
func secretSource(secrets cache.Cache, clusters client.Reader) source.Source {
	return source.Kind(secrets, scope.SecretMetadata(),
		handler.TypedEnqueueRequestsFromMapFunc(usersOf(clusters)),
		predicate.TypedResourceVersionChangedPredicate[*metav1.PartialObjectMetadata]{})
}

func usersOf(clusters client.Reader) handler.TypedMapFunc[*metav1.PartialObjectMetadata, reconcile.Request] {
	return func(ctx context.Context, secret *metav1.PartialObjectMetadata) []reconcile.Request {
		list := &api.ClusterList{}
		err := clusters.List(ctx, list, client.InNamespace(secret.Namespace), client.MatchingFields{indexSecrets: secret.Name})
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "listing the Clusters that use a Secret", "secret", secret.Name)
			return nil
		}
		requests := make([]reconcile.Request, 0, len(list.Items))
		for i := range list.Items {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
		return requests
	}
}
