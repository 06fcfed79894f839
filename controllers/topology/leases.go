package topology

import (
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/controllers/topology/facts"
)

// leases remembers when this process saw each primary Lease change, by its own monotonic clock. A record
// that is seen for the first time counts as changed at that moment. The zero value is ready to use.
type leases struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]leaseRecord // by Cluster
}

// leaseRecord is a Lease as last seen.
type leaseRecord struct {
	facts.LeaseRecord
	// changedAt is when this process saw the record change.
	changedAt time.Time
}

// same tells that nobody renewed, took or released the Lease in between.
func (l leaseRecord) same(m leaseRecord) bool { return l.Same(m.LeaseRecord) }

// saw takes a Lease that was read or heard of now. One that is older than what was seen before is ignored.
func (l *leases) saw(cluster types.NamespacedName, lease *coordinationv1.Lease, now time.Time) leaseRecord {
	next := leaseRecord{facts.LeaseOf(lease), now}
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
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}

func (l *leases) gone(cluster types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.seen, cluster)
}

func (l leaseRecord) snapshot(now time.Time) core.Lease { return l.Snapshot(now.Sub(l.changedAt)) }
