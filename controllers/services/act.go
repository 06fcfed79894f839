package services

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
	"cnmsql.co/operator/controllers/internal/sweep"
)

// act applies the Services, deletes those of removed instances and those that are not asked for any more, and says how it
// went. The status is written even
// when a Service could not be.
func (r *Reconciler) act(ctx context.Context, c *api.Cluster, services []*corev1.Service) (ctrl.Result, error) {
	result := apply.All(ctx, r.Client, Manager, c, services)
	if result.Written > 0 {
		ctrl.LoggerFrom(ctx).Info("applied Services", "changed", result.Written)
	}
	now := result.Condition(api.ConditionServicesReady, "every Service exists as it should")
	status.Tell(r.Events, c, now)
	sweepErr := errors.Join(
		sweep.Removed(ctx, r.Client, r.Live, c, &corev1.ServiceList{}),
		sweep.Unwanted(ctx, r.Client, c, &corev1.ServiceList{}, names(services)),
	)
	_, err := status.Apply(ctx, r.Client, Manager, c, status.Owns{}, status.Fields{Conditions: []metav1.Condition{now}})
	if err := errors.Join(result.Err, sweepErr, err); err != nil {
		return ctrl.Result{}, err
	}
	if len(result.Foreign) > 0 {
		return ctrl.Result{RequeueAfter: scope.RecheckForeign}, nil
	}
	return ctrl.Result{}, nil
}

func names(services []*corev1.Service) []string {
	list := make([]string, 0, len(services))
	for _, s := range services {
		list = append(list, s.Name)
	}
	return list
}
