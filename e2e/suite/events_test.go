package suite

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// events are what was told about a Cluster, one a line: reason and message.
func events(t *testing.T, e *framework.Environment, key client.ObjectKey) string {
	t.Helper()
	list := &corev1.EventList{}
	must(t, e.Client.List(t.Context(), list, client.InNamespace(key.Namespace)))
	var b strings.Builder
	for _, ev := range list.Items {
		if ev.InvolvedObject.Kind == "Cluster" && ev.InvolvedObject.Name == key.Name {
			fmt.Fprintf(&b, "%s: %s\n", ev.Reason, ev.Message)
		}
	}
	return b.String()
}
