package suite

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/e2e/framework"
)

// delay makes a replica apply what it receives so many seconds late.
func delay(t *testing.T, e *framework.Environment, key client.ObjectKey, name string, seconds int) {
	t.Helper()
	must(t, e.SQL(t.Context(), named(key, name), key.Name, fmt.Sprintf(
		"STOP REPLICA SQL_THREAD; CHANGE REPLICATION SOURCE TO SOURCE_DELAY = %d; START REPLICA SQL_THREAD", seconds)))
}

// A replica that has fallen behind the bound leaves the read Services, goes on receiving and acknowledging, and comes back
// once it has caught up. The lag of the others, and of the primary, is no matter.
func TestAReplicaBehindTheBoundIsNotReadFromUntilItHasCaughtUp(t *testing.T) {
	e, key := shared(t)
	bound := func(value string) {
		_, err := e.Kubectl(t.Context(), "-n", key.Namespace, "patch", "mysql", key.Name, "--type=merge", "-p", `{"spec":{"replication":{"maxReadyLag":`+value+`}}}`)
		must(t, err)
	}
	c := status(t, e, key)
	late := replica(t, e, key)
	g := NewWithT(t)
	bound(`"5s"`)
	t.Cleanup(func() {
		_ = e.SQL(context.Background(), named(key, late), key.Name, "STOP REPLICA SQL_THREAD; CHANGE REPLICATION SOURCE TO SOURCE_DELAY = 0; START REPLICA SQL_THREAD")
		_, _ = e.Kubectl(context.Background(), "-n", key.Namespace, "patch", "mysql", key.Name, "--type=merge", "-p", `{"spec":{"replication":null}}`)
	})
	ready(t, e, key)
	whileWriting(t, e, key, func() {
		delay(t, e, key, late, 3600)
		for _, service := range []string{"ro", "r"} {
			g.Eventually(func() []string { return endpoints(t, e, named(key, c.ServiceName(service))) }, "60s", "200ms").ShouldNot(ContainElement(late), "Service %s", service)
		}
		g.Eventually(func() string { return status(t, e, key).Status.PhaseReason }, "20s", "200ms").Should(ContainSubstring("behind maxReadyLag: " + late))
		g.Expect(probe(t, e, key, late)).To(MatchRegexp(`^replication lag \d+s exceeds maxReadyLag 5s`))
		g.Eventually(func() map[string]int64 { return status(t, e, key).Status.ReplicationLagByInstance }, "60s", "1s").Should(HaveKeyWithValue(late, BeNumerically(">=", 5000)))
		if semi := status(t, e, key).Status.SemiSync; semi == nil || !strings.Contains(strings.Join(semi.Ackers, " "), late) {
			t.Errorf("%s acknowledges no more: %+v", late, semi)
		}
		if got := endpoints(t, e, named(key, c.ServiceName("ro"))); len(got) != 1 {
			t.Errorf("-ro leads to %v, want the other replica", got)
		}
		delay(t, e, key, late, 0)
		ready(t, e, key)
		for _, service := range []string{"ro", "r"} {
			g.Eventually(func() []string { return endpoints(t, e, named(key, c.ServiceName(service))) }, "20s", "200ms").Should(ContainElement(late), "Service %s", service)
		}
	})
}

// probe is what an instance's readiness probe says.
func probe(t *testing.T, e *framework.Environment, key client.ObjectKey, name string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://%s:%d/readyz", pod(t, e, key, name).Status.PodIP, api.PortProbes), http.NoBody)
	must(t, err)
	response, err := (&http.Client{Transport: &http.Transport{DialContext: e.Dial}}).Do(request)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return string(body)
}
