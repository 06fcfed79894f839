package scope

import (
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Cache is how the manager's cache is to be made: of the kinds that are many in a Kubernetes cluster it holds
// only the objects with a Cluster's label, and of no object the managed fields. namespaces limits it; none
// means all.
func Cache(namespaces ...string) (cache.Options, error) {
	ours, err := labels.NewRequirement(api.LabelCluster, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("selector of our objects: %w", err)
	}
	only := cache.ByObject{Label: labels.NewSelector().Add(*ours)}
	options := cache.Options{
		DefaultTransform:  cache.TransformStripManagedFields(),
		DefaultNamespaces: inNamespaces(namespaces),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}:                   only,
			&corev1.PersistentVolumeClaim{}: only,
			&corev1.Service{}:               only,
			&corev1.Secret{}:                only,
			&corev1.ConfigMap{}:             only,
			&corev1.ServiceAccount{}:        only,
			&rbacv1.Role{}:                  only,
			&rbacv1.RoleBinding{}:           only,
			&coordinationv1.Lease{}:         only,
			&policyv1.PodDisruptionBudget{}: only,
		},
	}
	return options, nil
}

// Secrets returns a cache for watching Secrets by their metadata, those of users included. It is run by mgr.
// It holds names, labels and versions; content and annotations never enter memory for long.
func Secrets(mgr manager.Manager, namespaces ...string) (cache.Cache, error) {
	c, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient:        mgr.GetHTTPClient(),
		Scheme:            mgr.GetScheme(),
		Mapper:            mgr.GetRESTMapper(),
		DefaultNamespaces: inNamespaces(namespaces),
		DefaultTransform:  identity,
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of Secrets' metadata: %w", err)
	}
	if err := mgr.Add(c); err != nil {
		return nil, fmt.Errorf("adding the cache of Secrets' metadata: %w", err)
	}
	return c, nil
}

// SecretMetadata is the object to watch or read in the cache that Secrets returns.
func SecretMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	return m
}

// identity keeps of an object's metadata what tells one object and version from another.
func identity(o any) (any, error) {
	if m, ok := o.(*metav1.PartialObjectMetadata); ok {
		m.Annotations, m.ManagedFields, m.Finalizers = nil, nil, nil
	}
	return o, nil
}

func inNamespaces(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}
	only := make(map[string]cache.Config, len(namespaces))
	for _, n := range namespaces {
		only[n] = cache.Config{}
	}
	return only
}
