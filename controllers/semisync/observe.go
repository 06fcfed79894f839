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
	// cloning are the instances whose data are to be copied from the primary, and of which nothing comes.
	cloning []string
	// memory is what was remembered of the last decision.
	memory
	now time.Time
}

// memory is what a reconciler remembers of a Cluster. Lost with the process: then it waits anew, which is longer but as
// safe.
type memory struct {
	// raising is what a raise under way waits for; nil when there is none.
	raising *raise
	// stuck is since when a clone and commits have waited for one another; zero when they do not.
	stuck time.Time
}

func (r *Reconciler) observe(c *api.Cluster) facts {
	key := client.ObjectKeyFromObject(c)
	f := facts{cluster: c, reports: map[string]*protocol.Report{}, memory: r.recall(key), now: time.Now()}
	for _, instance := range c.Status.InstanceNames {
		report, age, ok := r.Instances.Report(key, instance)
		ok = ok && age <= time.Duration(freshness)
		if ok && report.Provision != nil && report.Provision.Step == protocol.StepCloning && report.Provision.Stalled {
			f.cloning = append(f.cloning, instance)
		}
		if ok && report.MySQL != nil {
			f.reports[instance] = &report
		} else if r.Instances.Unasked(key, instance) {
			f.unasked = true
		}
	}
	return f
}

func (r *Reconciler) recall(key types.NamespacedName) memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.memory[key]
}

func (r *Reconciler) remember(key types.NamespacedName, m memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m == (memory{}) {
		delete(r.memory, key)
		return
	}
	if r.memory == nil {
		r.memory = map[types.NamespacedName]memory{}
	}
	r.memory[key] = m
}
