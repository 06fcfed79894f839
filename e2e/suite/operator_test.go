package suite

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// killOperator ends its Pod without a warning.
func killOperator(t *testing.T, e *framework.Environment) {
	t.Helper()
	_, err := e.Kubectl(t.Context(), "-n", framework.OperatorNamespace, "delete", "pod", "-l", "app.kubernetes.io/component=operator", "--grace-period=0", "--force")
	must(t, err)
}

// What the operator was doing is carried on by the next one.
func TestOperatorMayBeRestartedInTheMiddle(t *testing.T) {
	for name, begin := range map[string]func(*testing.T, *framework.Environment, client.ObjectKey){
		"of a switchover": func(t *testing.T, e *framework.Environment, key client.ObjectKey) {
			_, err := e.Plugin(t.Context(), key.Namespace, "promote", key.Name, replica(t, e, key))
			must(t, err)
		},
		"of a failover": func(t *testing.T, e *framework.Environment, key client.ObjectKey) {
			must(t, e.KillServer(t.Context(), named(key, status(t, e, key).Status.CurrentPrimary)))
		},
		"of nothing": func(*testing.T, *framework.Environment, client.ObjectKey) {},
	} {
		t.Run(name, func(t *testing.T) {
			e, key := shared(t)
			whileWriting(t, e, key, func() {
				begin(t, e, key)
				killOperator(t, e)
				must(t, e.OperatorReady(t.Context()))
			})
		})
	}
}
