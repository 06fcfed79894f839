package lease

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// unknown stands for a holder, or the Pod of one, that cannot be named any more.
const unknown = "unknown"

// firstHolder is who holds a Lease that is made now: nobody on a Cluster that never had a primary, otherwise
// the current primary, as of this look. Never nobody on a Cluster that had one: its primary may be writing.
func firstHolder(o *origin) string {
	c := o.cluster
	if !c.Established() {
		return ""
	}
	instance, uid := c.Status.CurrentPrimary, string(o.primaryUID)
	if instance == "" {
		instance = unknown
	}
	if uid == "" {
		uid = unknown
	}
	return api.LeaseHolder(instance, uid)
}

// shown is what the status says of the Lease: what it said before unless the holder is another one, so that
// renewals change nothing.
func shown(before *api.PrimaryLeaseStatus, lease *coordinationv1.Lease) *api.PrimaryLeaseStatus {
	if lease == nil {
		return before
	}
	holder := holderOf(lease)
	if before != nil && before.Holder == holder {
		return before
	}
	now := &api.PrimaryLeaseStatus{Holder: holder}
	if at := lease.Spec.AcquireTime; at != nil && holder != "" {
		since := metav1.NewTime(at.Time).Rfc3339Copy()
		now.Since = &since
	}
	return now
}
