package certificates

import (
	"context"
	"fmt"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observe reads the wanted Certificates as they are now; one that cannot be seen yet is nil.
func (r *Reconciler) observe(ctx context.Context, wanted []*cmv1.Certificate) ([]*cmv1.Certificate, error) {
	seen := make([]*cmv1.Certificate, len(wanted))
	for i, w := range wanted {
		now := &cmv1.Certificate{}
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(w), now)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading Certificate %s: %w", w.Name, err)
		}
		seen[i] = now
	}
	return seen, nil
}
