package objects

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Lease is the Lease of the primary role as it is first made, held by holder, or free when that is empty.
// Afterwards the instances alone write it.
func Lease(c *api.Cluster, holder string, now time.Time) *coordinationv1.Lease {
	m := meta(c, c.LeaseName())
	lease := &coordinationv1.Lease{ObjectMeta: m}
	lease.Spec.LeaseDurationSeconds = new(int32(api.PrimaryLeaseTTL / time.Second))
	lease.Spec.HolderIdentity = new(holder)
	if holder != "" {
		at := metav1.NewMicroTime(now)
		lease.Spec.AcquireTime = &at
		lease.Spec.RenewTime = &at
	}
	return lease
}
