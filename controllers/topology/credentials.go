package topology

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/observer"
	"cnmsql.co/operator/controllers/internal/scope"
)

// credentials keeps each Cluster's client certificate, so that its Secret is read only when it changed and
// no cache needs to hold the content of Secrets. The zero value is ready to use.
type credentials struct {
	mu    sync.Mutex
	known map[types.NamespacedName]versioned
}

type versioned struct {
	resourceVersion string
	credentials     observer.Credentials
}

func (k *credentials) get(cluster types.NamespacedName) (versioned, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.known[cluster]
	return v, ok
}

func (k *credentials) put(cluster types.NamespacedName, v versioned) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.known == nil {
		k.known = map[types.NamespacedName]versioned{}
	}
	k.known[cluster] = v
}

func (k *credentials) forget(cluster types.NamespacedName) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, cluster)
}

// clientCertificate is by which instances are asked; false while there never was one.
func (r *Reconciler) clientCertificate(ctx context.Context, c *api.Cluster) (observer.Credentials, bool, error) {
	key := client.ObjectKeyFromObject(c)
	known, ok := r.credentials.get(key)
	meta, err := r.secret(ctx, c, c.ClientTLSSecretName())
	if err != nil {
		return observer.Credentials{}, false, err
	}
	if meta == nil || ok && known.resourceVersion == meta.ResourceVersion {
		return known.credentials, ok, nil
	}
	secret := &corev1.Secret{}
	err = r.Live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.ClientTLSSecretName()}, secret)
	if apierrors.IsNotFound(err) {
		return known.credentials, ok, nil
	}
	if err != nil {
		return observer.Credentials{}, false, fmt.Errorf("reading Secret %s: %w", c.ClientTLSSecretName(), err)
	}
	known = versioned{secret.ResourceVersion, observer.Credentials{
		CA: secret.Data["ca.crt"], Certificate: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey],
	}}
	r.credentials.put(key, known)
	return known.credentials, true, nil
}

// secret is the metadata of a Secret in the Cluster's namespace; nil when there is none.
func (r *Reconciler) secret(ctx context.Context, c *api.Cluster, name string) (*metav1.PartialObjectMetadata, error) {
	m := scope.SecretMetadata()
	err := r.Secrets.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, m)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("looking for Secret %s: %w", name, err)
	}
	return m, nil
}
