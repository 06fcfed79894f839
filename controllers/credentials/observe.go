package credentials

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

// found is a Secret as it is now; it is nil when there is none.
type found struct {
	secret *corev1.Secret
	// theirs tells that another controller than this Cluster keeps it.
	theirs bool
}

func (f found) exists() bool { return f.secret != nil }

func (f found) value(key string) string {
	if f.secret == nil {
		return ""
	}
	return string(f.secret.Data[key])
}

// observe reads the Secret of each account, in the order of accounts.
func (r *Reconciler) observe(ctx context.Context, c *api.Cluster) ([]found, error) {
	wanted := accounts(c)
	seen := make([]found, len(wanted))
	for i, a := range wanted {
		s := &corev1.Secret{}
		err := r.Live.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: a.secret}, s)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading Secret %s: %w", a.secret, err)
		}
		owner := metav1.GetControllerOf(s)
		seen[i] = found{secret: s, theirs: owner != nil && owner.UID != c.UID}
	}
	return seen, nil
}
