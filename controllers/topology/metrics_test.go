package topology

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
)

// shown are the samples about a Cluster: name, its other label's value if it has one, and the value or the count.
func shown(t *testing.T, cluster string) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			of, rest := "", []string{f.GetName()}
			for _, l := range m.GetLabel() {
				switch l.GetName() {
				case "cluster":
					of = l.GetValue()
				case "cause", "reason", "instance":
					rest = append(rest, l.GetValue())
				}
			}
			if of == cluster {
				all[strings.Join(rest, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return all
}

func TestMetricsShowWhatWasDecided(t *testing.T) {
	c := aCluster()
	c.Name = "measured"
	d := core.Decision{
		Promoted: &core.Promotion{Cause: api.CauseFailed, Took: 2 * time.Second}, Brake: 90 * time.Second,
		Status: api.ClusterStatus{Divergence: []api.Divergence{{Instance: "measured-2", Count: 7}}},
	}
	meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{Type: api.ConditionFailoverBlocked, Status: metav1.ConditionTrue, Reason: api.ReasonWitnessesMissing})
	measure(c, d, false)
	if got := shown(t, "measured"); got["cnmsql_promotions_total failed"] != 0 {
		t.Errorf("a promotion is counted that was not written down: %v", got)
	}
	measure(c, d, true)
	got := shown(t, "measured")
	for sample, want := range map[string]float64{
		"cnmsql_promotions_total failed": 1, "cnmsql_failover_duration_seconds": 1, "cnmsql_failover_blocked " + api.ReasonWitnessesMissing: 1,
		"cnmsql_failover_brake_remaining_seconds": 90, "cnmsql_divergent_transactions measured-2": 7,
	} {
		if got[sample] != want {
			t.Errorf("%s is %v, want %v", sample, got[sample], want)
		}
	}
	measure(c, core.Decision{}, true)
	if got := shown(t, "measured"); len(got) != 3 || got["cnmsql_failover_brake_remaining_seconds"] != 0 {
		t.Errorf("what is over is still shown: %v", got)
	}
	unmeasure(types.NamespacedName{Namespace: c.Namespace, Name: c.Name})
	if got := shown(t, "measured"); len(got) != 0 {
		t.Errorf("of a Cluster that is gone: %v", got)
	}
}
