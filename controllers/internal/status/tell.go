package status

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	api "cnmsql.co/operator/api/v1alpha1"
)

// maxNote is the longest text of an event that the API server takes, in bytes.
const maxNote = 1024

// Tell sends an event when condition says, and the Cluster's status does not say so yet, that an object could not be
// made as it should.
func Tell(recorder events.EventRecorder, cluster *api.Cluster, condition metav1.Condition) {
	reason := map[string]string{
		api.ReasonForeignObject: api.EventForeignObject, api.ReasonApplyFailed: api.EventApplyFailed,
	}[condition.Reason]
	if reason == "" || !Changed(cluster, condition) {
		return
	}
	recorder.Eventf(cluster, nil, corev1.EventTypeWarning, reason, "Apply", "%s", Note(condition.Message))
}

// Note is a message as an event can hold it.
func Note(message string) string {
	if len(message) > maxNote {
		return message[:maxNote-3] + "..."
	}
	return message
}
