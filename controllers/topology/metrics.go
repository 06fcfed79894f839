package topology

import (
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
)

// The metrics of this package, by Cluster. docs/primary.md lists them.
var (
	promotions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "cnmsql_promotions_total", Help: "Completed changes of primary, by what led to them.",
	}, []string{"namespace", "cluster", "cause"})
	failoverDuration = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "cnmsql_failover_duration_seconds", Help: "From when the primary was first seen to have failed to the claim of its successor.",
		Buckets: []float64{0.5, 1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 300, 900, 3600},
	}, []string{"namespace", "cluster"})
	blocked = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "cnmsql_failover_blocked", Help: "1 while a failed primary may not be replaced, by the reason of the condition FailoverBlocked.",
	}, []string{"namespace", "cluster", "reason"})
	brake = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "cnmsql_failover_brake_remaining_seconds", Help: "How long failoverPolicy.minTimeBetweenFailovers would now hold a failover back.",
	}, []string{"namespace", "cluster"})
	divergent = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "cnmsql_divergent_transactions", Help: "Transactions that an instance holds and the primary does not.",
	}, []string{"namespace", "cluster", "instance"})
)

func init() { metrics.Registry.MustRegister(promotions, failoverDuration, blocked, brake, divergent) }

// measure shows what was decided; committed tells that it was also written, so that a promotion is counted once.
func measure(c *api.Cluster, d core.Decision, committed bool) {
	labels := prometheus.Labels{"namespace": c.Namespace, "cluster": c.Name}
	if d.Promoted != nil && committed {
		promotions.WithLabelValues(c.Namespace, c.Name, string(d.Promoted.Cause)).Inc()
		if d.Promoted.Cause == api.CauseFailed {
			failoverDuration.With(labels).Observe(d.Promoted.Took.Seconds())
		}
	}
	blocked.DeletePartialMatch(labels)
	if is := meta.FindStatusCondition(d.Status.Conditions, api.ConditionFailoverBlocked); is != nil && is.Status == metav1.ConditionTrue {
		blocked.WithLabelValues(c.Namespace, c.Name, is.Reason).Set(1)
	}
	brake.With(labels).Set(d.Brake.Seconds())
	divergent.DeletePartialMatch(labels)
	for _, i := range d.Status.Divergence {
		divergent.WithLabelValues(c.Namespace, c.Name, i.Instance).Set(float64(i.Count))
	}
}

// unmeasure forgets a Cluster that is gone.
func unmeasure(cluster types.NamespacedName) {
	labels := prometheus.Labels{"namespace": cluster.Namespace, "cluster": cluster.Name}
	for _, v := range []interface {
		DeletePartialMatch(prometheus.Labels) int
	}{promotions, failoverDuration, blocked, brake, divergent} {
		v.DeletePartialMatch(labels)
	}
}
