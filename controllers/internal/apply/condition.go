package apply

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Condition tells how applying went: what is in the way, what failed, or, when nothing did, ready.
func (r Result) Condition(kind, ready string) metav1.Condition {
	out := metav1.Condition{Type: kind, Status: metav1.ConditionFalse}
	switch {
	case len(r.Foreign) > 0:
		out.Reason, out.Message = api.ReasonForeignObject, r.ForeignMessage()
	case r.Err != nil:
		out.Reason, out.Message = api.ReasonApplyFailed, FailedMessage(r.Err)
	default:
		out.Status, out.Reason, out.Message = metav1.ConditionTrue, api.ReasonReconciled, ready
	}
	return out
}

// FailedMessage says what could not be written, and what a person can look at; err names the object.
func FailedMessage(err error) string {
	return strings.ReplaceAll(err.Error(), "\n", "; ") +
		" (it is tried again by itself; if that does not help, see that quotas, admission policies and the operator's ClusterRole allow it)"
}
