package certificates

import (
	"context"
	"errors"
	"fmt"
	"slices"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

// adopt lets the issued Secrets go with the Cluster. cert-manager leaves them behind when a Certificate goes,
// private keys included, unless it is told otherwise for all of its users.
func (r *Reconciler) adopt(ctx context.Context, c *api.Cluster, seen []*cmv1.Certificate) error {
	var failed error
	for _, cert := range seen {
		if ok, _ := issued(cert); !ok {
			continue
		}
		if err := r.adoptSecret(ctx, c, cert.Spec.SecretName); err != nil {
			failed = errors.Join(failed, err)
		}
	}
	return failed
}

// adoptSecret makes the Cluster an owner, but not the controller: cert-manager goes on to write the content. A
// Secret without our label is somebody else's, and not in the cache either.
func (r *Reconciler) adoptSecret(ctx context.Context, c *api.Cluster, name string) error {
	s := &corev1.Secret{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, s)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading Secret %s: %w", name, err)
	}
	if s.Labels[api.LabelCluster] != c.Name || slices.ContainsFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == c.UID }) {
		return nil
	}
	gvk := api.GroupVersion.WithKind("Cluster")
	owned := s.DeepCopy()
	owned.OwnerReferences = append(owned.OwnerReferences, metav1.OwnerReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: c.Name, UID: c.UID,
	})
	patch := client.MergeFromWithOptions(s, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, owned, patch, client.FieldOwner(Manager)); err != nil {
		return fmt.Errorf("making the Cluster an owner of Secret %s: %w", name, err)
	}
	ctrl.LoggerFrom(ctx).Info("the Secret goes with the Cluster from now on", "secret", name)
	return nil
}
