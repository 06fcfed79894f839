package docs

import (
	"os"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	_ "cnmsql.co/operator/controllers/topology" // registers its metrics
)

// A description is "Desc{fqName: "name", …".
func TestTheDocumentListsTheOperatorsMetrics(t *testing.T) {
	raw, err := os.ReadFile("primary.md")
	if err != nil {
		t.Fatal(err)
	}
	descriptions := make(chan *prometheus.Desc, 10_000)
	registry, ok := metrics.Registry.(prometheus.Collector)
	if !ok {
		t.Fatal("the registry does not describe what it holds")
	}
	registry.Describe(descriptions)
	close(descriptions)
	found := 0
	for d := range descriptions {
		_, rest, _ := strings.Cut(d.String(), `fqName: "`)
		name, _, _ := strings.Cut(rest, `"`)
		if !strings.HasPrefix(name, "cnmsql_") {
			continue
		}
		found++
		if !strings.Contains(string(raw), "| `"+name+"` |") {
			t.Errorf("primary.md does not list %s", name)
		}
	}
	if found == 0 {
		t.Error("the operator has no metrics")
	}
}
