package suite

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// steady is for how long nothing may happen.
const steady = time.Minute

// written are resources that only the operator, the instances and their helpers write in a quiet lab. Leases
// are not among them: they are renewed, those of nodes too; nor are events: a kubelet tells of each probe that a busy
// machine answers late.
var written = regexp.MustCompile(`^apiserver_request_total\{.*resource="(clusters|pods|services|secrets|configmaps|persistentvolumeclaims|serviceaccounts|roles|rolebindings|certificates|issuers|endpointslices)".*verb="(POST|PUT|PATCH|APPLY|DELETE)".*\} (\S+)$`)

// leases counts the renewals.
var leases = regexp.MustCompile(`^apiserver_request_total\{.*resource="leases".*verb="(PUT|PATCH|APPLY)".*\} (\S+)$`)

// forbidden counts what was refused.
var forbidden = regexp.MustCompile(`^apiserver_request_total\{.*code="403".*\} (\S+)$`)

// metrics are the API server's.
func metrics(t *testing.T, e *framework.Environment) string {
	t.Helper()
	set, err := kubernetes.NewForConfig(rest.CopyConfig(e.Config))
	must(t, err)
	raw, err := set.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(t.Context())
	must(t, err)
	return string(raw)
}

// count adds up the samples of the lines that match, by their labels.
func count(text string, which *regexp.Regexp) map[string]float64 {
	out := map[string]float64{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := which.FindStringSubmatch(line); m != nil {
			v, _ := strconv.ParseFloat(m[len(m)-1], 64)
			out[line[:strings.LastIndex(line, " ")]] += v
		}
	}
	return out
}

func grown(before, after map[string]float64) (total float64, what string) {
	for k, v := range after {
		if d := v - before[k]; d > 0 {
			total += d
			what += fmt.Sprintf("%v× %s\n", d, k)
		}
	}
	return total, what
}

// comesToRest waits until the Cluster has not been written for some time, and returns its version.
func comesToRest(t *testing.T, e *framework.Environment, key client.ObjectKey, quiet time.Duration) string {
	t.Helper()
	last, since := "", time.Now()
	NewWithT(t).Eventually(func() time.Duration {
		if now := status(t, e, key).ResourceVersion; now != last {
			last, since = now, time.Now()
		}
		return time.Since(since)
	}, "2m", "250ms").Should(BeNumerically(">=", quiet), "the status is written over and over")
	return last
}

// A Cluster to which nothing happens causes no writes but the renewals of its lease. What earlier tests caused
// (events, recorded sets) comes to rest within two minutes.
func TestASteadyClusterWritesNothing(t *testing.T) {
	e, key := shared(t)
	type moment struct{ version, told, metrics string }
	now := func() moment { return moment{status(t, e, key).ResourceVersion, events(t, e, key), metrics(t, e)} }
	begin, since := now(), time.Now()
	NewWithT(t).Eventually(func() (string, error) {
		m := now()
		_, what := grown(count(begin.metrics, written), count(m.metrics, written))
		if m.version != begin.version {
			what += "the Cluster was written\n"
		}
		if m.told != begin.told {
			what += fmt.Sprintf("something was told of the Cluster: %s, before: %s\n", m.told, begin.told)
		}
		switch still := time.Since(since); {
		case what != "":
			begin, since = m, time.Now()
			return what, nil
		case still < steady:
			return fmt.Sprintf("nothing was written for %.0f s", still.Seconds()), nil
		}
		n, _ := grown(count(begin.metrics, leases), count(m.metrics, leases))
		t.Logf("%v lease renewals in %s, those of nodes and controllers among them", n, steady)
		return "", nil
	}, 2*time.Minute+steady, "2s").Should(BeEmpty(), "no minute went by without a write")
}

// lacksRight is how the API server says that somebody has no right to something. It forbids for other reasons, too.
const lacksRight = "forbidden: User "

// Nobody lacks a right: what the suite did so far, it did with the shipped Roles.
func TestNothingWasForbidden(t *testing.T) {
	e, key := shared(t)
	text, err := e.Kubectl(t.Context(), "-n", framework.OperatorNamespace, "logs", "deployment/"+framework.OperatorName)
	must(t, err)
	for line := range strings.Lines(text) {
		if strings.Contains(line, lacksRight) {
			t.Errorf("operator: %s", line)
		}
	}
	for labels, n := range count(metrics(t, e), forbidden) {
		if strings.Contains(labels, "cnmsql") {
			t.Errorf("refused %v times: %s", n, labels)
		}
	}
	for _, name := range status(t, e, key).Status.InstanceNames {
		text, err := e.Kubectl(t.Context(), "-n", namespace, "logs", name, "-c", "mysql")
		must(t, err)
		if i := strings.Index(text, lacksRight); i >= 0 {
			t.Errorf("%s: %s", name, text[max(i-200, 0):min(i+200, len(text))])
		}
	}
}
