package semisync

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// freshness is how old a report may be to count: after that the instance is silent.
const freshness = 3 * protocol.WatchHeartbeat

// facts are all that a decision depends on.
type facts struct {
	cluster *api.Cluster
	// reports are those of instances that are heard and whose server answers.
	reports map[string]*protocol.Report
	// unasked tells that of some instance nobody knows yet whether it is heard.
	unasked bool
	// raising is what a raise under way waits for; nil when there is none.
	raising *raise
}

func (r *Reconciler) observe(c *api.Cluster) facts {
	key := client.ObjectKeyFromObject(c)
	f := facts{cluster: c, reports: map[string]*protocol.Report{}, raising: r.recall(key)}
	for _, instance := range c.Status.InstanceNames {
		if report, ok := heard(r.Instances, key, instance); ok {
			f.reports[instance] = report
		} else if r.Instances.Unasked(key, instance) {
			f.unasked = true
		}
	}
	return f
}

func heard(instances Instances, key types.NamespacedName, instance string) (*protocol.Report, bool) {
	report, age, ok := instances.Report(key, instance)
	if !ok || age > time.Duration(freshness) || report.MySQL == nil {
		return nil, false
	}
	return &report, true
}

func (r *Reconciler) recall(key types.NamespacedName) *raise {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.raising[key]
}

func (r *Reconciler) remember(key types.NamespacedName, to *raise) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if to == nil {
		delete(r.raising, key)
		return
	}
	if r.raising == nil {
		r.raising = map[types.NamespacedName]*raise{}
	}
	r.raising[key] = to
}
