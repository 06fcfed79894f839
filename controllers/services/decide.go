package services

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/apply"
	"cnmsql.co/operator/controllers/objects"
)

// wanted are all Services of a Cluster.
func wanted(c *api.Cluster) []*corev1.Service {
	list := objects.RoleServices(c)
	for _, instance := range objects.Instances(c) {
		list = append(list, objects.InstanceService(c, instance))
	}
	return list
}

// condition tells how applying them went.
func condition(r apply.Result) metav1.Condition {
	out := metav1.Condition{Type: api.ConditionServicesReady, Status: metav1.ConditionFalse}
	switch {
	case len(r.Foreign) > 0:
		out.Reason, out.Message = api.ReasonForeignObject, r.ForeignMessage()
	case r.Err != nil:
		out.Reason, out.Message = api.ReasonApplyFailed, r.Err.Error()
	default:
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, api.ReasonReconciled, "every Service exists as it should"
	}
	return out
}
