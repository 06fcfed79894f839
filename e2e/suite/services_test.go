package suite

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// endpoints are the Pods that a Service leads to.
func endpoints(t *testing.T, e *framework.Environment, service client.ObjectKey) []string {
	t.Helper()
	list := &discoveryv1.EndpointSliceList{}
	must(t, e.Client.List(t.Context(), list, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name}))
	var names []string
	for _, s := range list.Items {
		for _, ep := range s.Endpoints {
			if ep.Conditions.Ready != nil && *ep.Conditions.Ready && ep.TargetRef != nil {
				names = append(names, ep.TargetRef.Name)
			}
		}
	}
	slices.Sort(names)
	return names
}

func TestServicesLeadToTheirRoles(t *testing.T) {
	e, key := shared(t)
	c := status(t, e, key)
	replicas := slices.DeleteFunc(slices.Clone(c.Status.InstanceNames), func(n string) bool { return n == c.Status.CurrentPrimary })
	for service, want := range map[string][]string{
		c.ServiceName("rw"): {c.Status.CurrentPrimary}, c.ServiceName("ro"): replicas, c.ServiceName("r"): c.Status.InstanceNames,
		c.Status.InstanceNames[0]: {c.Status.InstanceNames[0]},
	} {
		NewWithT(t).Eventually(func() []string { return endpoints(t, e, named(key, service)) }, "10s", "100ms").Should(Equal(want), "Service %s", service)
	}
}

func TestServicesAreAddedDisabledAndTakenBack(t *testing.T) {
	e, key := shared(t)
	g := NewWithT(t)
	c := status(t, e, key)
	patch := func(services string) {
		_, err := e.Kubectl(t.Context(), "-n", key.Namespace, "patch", "mysql", key.Name, "--type=merge", "-p", `{"spec":{"managed":`+services+`}}`)
		must(t, err)
	}
	exists := func(name string) func() bool {
		return func() bool {
			return e.Client.Get(t.Context(), named(key, c.ServiceName(name)), &corev1.Service{}) == nil
		}
	}
	patch(`{"services":{"disabledDefaultServices":["r"],"additional":[{"name":"reporting","selectorType":"ro","serviceTemplate":{"spec":{"type":"NodePort"}}}]}}`)
	defer patch("null")
	ro := endpoints(t, e, named(key, c.ServiceName("ro")))
	g.Eventually(func() []string { return endpoints(t, e, named(key, c.ServiceName("reporting"))) }, "20s", "200ms").Should(Equal(ro))
	g.Eventually(exists("r"), "20s", "200ms").Should(BeFalse(), "the disabled Service")
	patch("null")
	g.Eventually(exists("reporting"), "20s", "200ms").Should(BeFalse(), "the Service that is not asked for any more")
	g.Eventually(func() []string { return endpoints(t, e, named(key, c.ServiceName("r"))) }, "20s", "200ms").Should(HaveLen(3))
}

func TestAWriteThroughRWIsReadThroughRO(t *testing.T) {
	e, key := shared(t)
	whileWriting(t, e, key, func() {
		db, err := e.Database(t.Context(), key)
		must(t, err)
		ro, err := db.Open(key.Name + "-ro")
		must(t, err)
		defer func() { must(t, ro.Close()) }()
		NewWithT(t).Eventually(func() (n int, err error) {
			err = ro.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+tableName(t)).Scan(&n)
			return n, err
		}, "20s", "100ms").Should(BeNumerically(">", 0))
		_, err = ro.ExecContext(t.Context(), "INSERT INTO "+tableName(t)+" (id) VALUES (0)")
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring("read-only")))
	})
}
