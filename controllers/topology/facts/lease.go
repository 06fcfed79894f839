package facts

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/instance/gtid"
)

// LeaseRecord is what matters of a primary Lease at one moment.
type LeaseRecord struct {
	UID             types.UID
	ResourceVersion string
	Holder          string
	Renewed         metav1.MicroTime
	Transitions     int32
	// Handoff is nil when there is none or it cannot be read.
	Handoff        *gtid.Set
	HandoffAttempt string
}

// LeaseOf reads a Lease.
func LeaseOf(l *coordinationv1.Lease) LeaseRecord {
	r := LeaseRecord{UID: l.UID, ResourceVersion: l.ResourceVersion, HandoffAttempt: l.Annotations[api.AnnotationHandoffAttempt]}
	if l.Spec.HolderIdentity != nil {
		r.Holder = *l.Spec.HolderIdentity
	}
	if l.Spec.RenewTime != nil {
		r.Renewed = *l.Spec.RenewTime
	}
	if l.Spec.LeaseTransitions != nil {
		r.Transitions = *l.Spec.LeaseTransitions
	}
	if text, ok := l.Annotations[api.AnnotationHandoffGTID]; ok {
		if set, err := gtid.Parse(text); err == nil {
			r.Handoff = &set
		}
	}
	return r
}

// Same tells that two records are one: nobody renewed, took or released the Lease in between.
func (l LeaseRecord) Same(m LeaseRecord) bool {
	return l.UID == m.UID && l.Holder == m.Holder && l.Renewed.Equal(&m.Renewed) && l.Transitions == m.Transitions
}

// Snapshot is the Lease for a snapshot; unchanged is how long ago the reader saw it change, by its monotonic clock.
func (l LeaseRecord) Snapshot(unchanged time.Duration) core.Lease {
	return core.Lease{Known: true, Holder: l.Holder, Unchanged: max(unchanged, 0), Handoff: l.Handoff, HandoffAttempt: l.HandoffAttempt}
}
