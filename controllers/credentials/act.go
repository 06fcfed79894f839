package credentials

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/status"
	"cnmsql.co/operator/controllers/objects"
)

// generate returns 32 characters that need no quoting anywhere.
func generate() string {
	raw := make([]byte, 24)
	_, _ = rand.Read(raw) // never fails
	return base64.RawURLEncoding.EncodeToString(raw)
}

func (r *Reconciler) act(ctx context.Context, c *api.Cluster, seen []found, p plan) error {
	bySecret := map[string]*corev1.Secret{}
	for _, f := range seen {
		if f.exists() {
			bySecret[f.secret.Name] = f.secret
		}
	}
	var failed error
	for _, s := range p.steps {
		if err := r.step(ctx, c, bySecret[s.secret], s); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		ctrl.LoggerFrom(ctx).Info("filled a Secret", "secret", s.secret, "created", s.create)
	}
	now := p.condition(failed)
	status.Tell(r.Events, c, now)
	incomplete := now.Reason == api.ReasonSecretMissing || now.Reason == api.ReasonSecretIncomplete
	if incomplete && status.Changed(c, now) {
		r.Events.Eventf(c, nil, corev1.EventTypeWarning, api.EventCredentialsIncomplete, "Check", "%s", now.Message)
	}
	_, err := status.Apply(ctx, r.Client, Manager, c, status.Owns{}, status.Fields{Conditions: []metav1.Condition{now}})
	return errors.Join(failed, err)
}

// step makes a Secret or fills its empty keys. Both are refused by the API server when somebody else was
// there first: then the next pass sees what they did.
func (r *Reconciler) step(ctx context.Context, c *api.Cluster, now *corev1.Secret, s step) error {
	if s.create {
		made := &corev1.Secret{Type: corev1.SecretTypeBasicAuth}
		made.Namespace, made.Name = c.Namespace, s.secret
		made.Labels, made.Annotations = objects.Labels(c, ""), objects.Annotations(c)
		made.OwnerReferences = []metav1.OwnerReference{objects.Owner(c)}
		made.Data = map[string][]byte{}
		r.fill(made, s)
		if err := r.Client.Create(ctx, made, client.FieldOwner(Manager)); err != nil {
			return fmt.Errorf("creating Secret %s: %w", s.secret, err)
		}
		return nil
	}
	filled := now.DeepCopy()
	if filled.Data == nil {
		filled.Data = map[string][]byte{}
	}
	r.fill(filled, s)
	patch := client.MergeFromWithOptions(now, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, filled, patch, client.FieldOwner(Manager)); err != nil {
		return fmt.Errorf("filling Secret %s: %w", s.secret, err)
	}
	return nil
}

func (r *Reconciler) fill(secret *corev1.Secret, s step) {
	if s.needUsername {
		secret.Data[api.SecretKeyUsername] = []byte(s.username)
	}
	if s.needPassword {
		secret.Data[api.SecretKeyPassword] = []byte(r.Password())
	}
}
