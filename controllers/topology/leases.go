package topology

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/instance/gtid"
)

// leases remembers when this process saw each primary Lease change, by its own monotonic clock. A record
// that is seen for the first time counts as changed at that moment. The zero value is ready to use.
type leases struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]leaseRecord // by Cluster
}

// leaseRecord is a Lease as last seen.
type leaseRecord struct {
	uid             types.UID
	resourceVersion string
	holder          string
	renewed         metav1.MicroTime
	transitions     int32
	handoff         *gtid.Set
	handoffAttempt  string
	// changedAt is when this process saw the record change.
	changedAt time.Time
}

// same tells that two records are one: nobody renewed, took or released the Lease in between.
func (l leaseRecord) same(m leaseRecord) bool {
	return l.uid == m.uid && l.holder == m.holder && l.renewed.Equal(&m.renewed) && l.transitions == m.transitions
}

func recordOf(l *coordinationv1.Lease) leaseRecord {
	r := leaseRecord{uid: l.UID, resourceVersion: l.ResourceVersion, handoffAttempt: l.Annotations[api.AnnotationHandoffAttempt]}
	if l.Spec.HolderIdentity != nil {
		r.holder = *l.Spec.HolderIdentity
	}
	if l.Spec.RenewTime != nil {
		r.renewed = *l.Spec.RenewTime
	}
	if l.Spec.LeaseTransitions != nil {
		r.transitions = *l.Spec.LeaseTransitions
	}
	if text, ok := l.Annotations[api.AnnotationHandoffGTID]; ok {
		if set, err := gtid.Parse(text); err == nil {
			r.handoff = &set
		}
	}
	return r
}

// saw takes a Lease that was read or heard of now. One that is older than what was seen before is ignored.
func (l *leases) saw(cluster types.NamespacedName, lease *coordinationv1.Lease, now time.Time) leaseRecord {
	next := recordOf(lease)
	next.changedAt = now
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, ok := l.seen[cluster]; ok {
		if older(next, before) {
			return before
		}
		if next.same(before) {
			next.changedAt = before.changedAt
		}
	}
	if l.seen == nil {
		l.seen = map[types.NamespacedName]leaseRecord{}
	}
	l.seen[cluster] = next
	return next
}

// older tells that a was written before b. Versions that cannot be compared are taken as news: that only
// makes a Lease look younger.
func older(a, b leaseRecord) bool {
	order, err := resourceversion.CompareResourceVersion(a.resourceVersion, b.resourceVersion)
	return err == nil && order < 0
}

func (l *leases) gone(cluster types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, cluster)
}

func (l leaseRecord) snapshot(now time.Time) core.Lease {
	return core.Lease{
		Known: true, Holder: l.holder, Unchanged: max(now.Sub(l.changedAt), 0),
		Handoff: l.handoff, HandoffAttempt: l.handoffAttempt,
	}
}
