package certificates

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/apply"
	"cnmsql.co/operator/controllers/internal/scope"
	"cnmsql.co/operator/controllers/internal/status"
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
	adoptErr := r.adopt(ctx, c, seen)
	err = r.show(ctx, c, expirations(seen), condition(wanted, seen, result))
	if err := errors.Join(result.Err, adoptErr, err); err != nil {
		return ctrl.Result{}, err
	}
	if len(result.Foreign) > 0 {
		return ctrl.Result{RequeueAfter: scope.RecheckForeign}, nil
	}
	return ctrl.Result{}, nil
}

// show writes the status, and an event when a person has to do something.
func (r *Reconciler) show(ctx context.Context, c *api.Cluster, certificates *api.CertificatesStatus, now metav1.Condition) error {
	if status.Changed(c, now) {
		switch now.Reason {
		case api.ReasonForeignObject:
			r.Events.Eventf(c, nil, corev1.EventTypeWarning, api.EventForeignObject, "Apply", "%s", now.Message)
		case api.ReasonCertManagerMissing:
			r.Events.Eventf(c, nil, corev1.EventTypeWarning, api.ReasonCertManagerMissing, "Check", "%s", now.Message)
		}
	}
	_, err := status.Apply(ctx, r.Client, Manager, c, status.Owns{Certificates: true},
		status.Fields{Conditions: []metav1.Condition{now}, Certificates: certificates})
	return err
}
