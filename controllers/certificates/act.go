package certificates

import (
	"context"
	"errors"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/apply"
	"cnmsql.co/operator/controllers/internal/scope"
	"cnmsql.co/operator/controllers/internal/status"
	"cnmsql.co/operator/controllers/internal/sweep"
	"cnmsql.co/operator/controllers/objects"
)

// act applies what is asked of cert-manager and shows what it answered so far.
func (r *Reconciler) act(ctx context.Context, c *api.Cluster) (ctrl.Result, error) {
	wanted := objects.Certificates(c, objects.Instances(c))
	result := apply.All(ctx, r.Client, Manager, c, objects.Issuers(c)).
		And(apply.All(ctx, r.Client, Manager, c, wanted))
	if result.Written > 0 {
		ctrl.LoggerFrom(ctx).Info("asked cert-manager", "changed", result.Written)
	}
	seen, err := r.observe(ctx, wanted)
	if err != nil {
		return ctrl.Result{}, errors.Join(result.Err, err)
	}
	keepErr := r.keep(ctx, c)
	err = r.show(ctx, c, expirations(seen), condition(wanted, seen, result))
	if err := errors.Join(result.Err, keepErr, err); err != nil {
		return ctrl.Result{}, err
	}
	if len(result.Foreign) > 0 {
		return ctrl.Result{RequeueAfter: scope.RecheckForeign}, nil
	}
	return ctrl.Result{}, nil
}

// keep sees to it that no issued Secret outlives what it is for, then deletes the Certificates of removed
// instances. Not the other way round: the Secret of a Certificate that is gone has nobody who adopts it.
func (r *Reconciler) keep(ctx context.Context, c *api.Cluster) error {
	if err := r.adopt(ctx, c); err != nil {
		return err
	}
	return sweep.Removed(ctx, r.Client, r.Live, c, &cmv1.CertificateList{})
}

// show writes the status, and an event when a person has to do something.
func (r *Reconciler) show(ctx context.Context, c *api.Cluster, certificates *api.CertificatesStatus, now metav1.Condition) error {
	status.Tell(r.Events, c, now)
	if now.Reason == api.ReasonCertManagerMissing && status.Changed(c, now) {
		r.Events.Eventf(c, nil, corev1.EventTypeWarning, api.ReasonCertManagerMissing, "Check", "%s", now.Message)
	}
	_, err := status.Apply(ctx, r.Client, Manager, c, status.Owns{Certificates: true},
		status.Fields{Conditions: []metav1.Condition{now}, Certificates: certificates})
	return err
}
