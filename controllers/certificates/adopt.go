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

// adopt gives the issued Secrets of all our Certificates, those of removed instances included, an owner to go
// with. cert-manager leaves them behind when a Certificate goes, private keys included, unless it is told
// otherwise for all of its users.
func (r *Reconciler) adopt(ctx context.Context, c *api.Cluster) error {
	list := &cmv1.CertificateList{}
	if err := r.Client.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels{api.LabelCluster: c.Name}); err != nil {
		return fmt.Errorf("listing Certificates: %w", err)
	}
	var failed error
	for i := range list.Items {
		cert := &list.Items[i]
		if ok, _ := issued(cert); ok && cert.DeletionTimestamp == nil && metav1.IsControlledBy(cert, c) {
			failed = errors.Join(failed, r.adoptSecret(ctx, c, cert))
		}
	}
	return failed
}

// adoptSecret writes the owner unless it is there already. A Secret without our label is somebody else's.
func (r *Reconciler) adoptSecret(ctx context.Context, c *api.Cluster, cert *cmv1.Certificate) error {
	name := cert.Spec.SecretName
	s, err := r.secret(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name})
	if s == nil {
		return err
	}
	owners := ownersOf(c, cert, s.OwnerReferences)
	if s.Labels[api.LabelCluster] != c.Name || slices.Equal(uids(owners), uids(s.OwnerReferences)) {
		return nil
	}
	owned := s.DeepCopy()
	owned.OwnerReferences = owners
	patch := client.MergeFromWithOptions(s, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, owned, patch, client.FieldOwner(Manager)); err != nil {
		return fmt.Errorf("setting the owner of Secret %s: %w", name, err)
	}
	ctrl.LoggerFrom(ctx).Info("set the owner with which the Secret goes", "secret", name)
	return nil
}

// secret is nil when there is none. One that the cache does not show is looked up: cert-manager says that it
// issued it, and nothing else would bring us back to it.
func (r *Reconciler) secret(ctx context.Context, key client.ObjectKey) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	err := r.Client.Get(ctx, key, s)
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, key, s)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", key.Name, err)
	}
	return s, nil
}

// ownersOf are the owners that a Secret should have, given those that it has; none of ours is its controller, since
// cert-manager goes on to write the content.
//
// The Secret of an instance goes with its Certificate, and so with the instance and with the Cluster. Those of the
// Cluster as a whole go with the Cluster itself: were the authority's to go with its Certificate, who deletes that
// one by mistake, or all of cert-manager's kinds, would lose the key that everything else is signed with.
func ownersOf(c *api.Cluster, cert *cmv1.Certificate, now []metav1.OwnerReference) []metav1.OwnerReference {
	owner := metav1.OwnerReference{APIVersion: api.GroupVersion.String(), Kind: "Cluster", Name: c.Name, UID: c.UID}
	owners := slices.Clone(now)
	if cert.Labels[api.LabelInstance] != "" {
		owner = metav1.OwnerReference{APIVersion: cmv1.SchemeGroupVersion.String(), Kind: cmv1.CertificateKind, Name: cert.Name, UID: cert.UID}
		// As long as the Cluster is an owner too, the Secret outlives the Certificate.
		owners = slices.DeleteFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == c.UID })
	}
	if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
		owners = append(owners, owner)
	}
	return owners
}

func uids(owners []metav1.OwnerReference) []string {
	list := make([]string, 0, len(owners))
	for _, o := range owners {
		list = append(list, string(o.UID))
	}
	return list
}
