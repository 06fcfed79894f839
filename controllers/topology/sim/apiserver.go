package sim

import (
	"fmt"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
)

// stored is the Cluster in one version. It is never changed.
type stored struct {
	version int
	c       *api.Cluster
}

// leaseObject is the Lease in one version. It is never changed.
type leaseObject struct {
	version        int
	holder         string
	renewals       int
	transitions    int
	handoff        *gtid.Set
	handoffAttempt string
	// renewTime is what the holder wrote, by its own date.
	renewTime time.Time
	// reasserted is when a server was last opened again that somebody else had closed, by its manager's date.
	reasserted time.Time
}

// podObject is a Pod in one version. It is never changed.
type podObject struct {
	version     int
	instance    int
	uid         string
	terminating bool
	ready       bool
	running     bool
	role        string
	routable    bool
}

// apiServer holds the objects.
type apiServer struct {
	w       *World
	version int
	cluster *stored
	lease   *leaseObject
	pods    [MaxInstances]*podObject
	uids    int
}

func (a *apiServer) init(w *World) {
	a.w = w
	c := specOf(w.cfg)
	st := &c.Status
	for i := range w.cfg.Instances {
		st.InstanceNames = append(st.InstanceNames, name(i))
		pod := &podObject{instance: i, uid: a.uid(i), ready: true, running: true, role: api.RoleReplica, routable: true}
		if i == 0 {
			pod.role = api.RolePrimary
		}
		a.pods[i] = pod
	}
	st.LatestGeneratedNode = int32(w.cfg.Instances) // #nosec G115 -- at most five
	st.CurrentPrimary, st.TargetPrimary, st.CurrentPrimaryGeneration = name(0), name(0), 1
	st.CurrentPrimaryServerUUID = uuid[0]
	start := w.sets.of(w.led.start()).String()
	st.PromotionGTIDExecuted = start
	st.GTIDExecutedByInstance = map[string]string{}
	for i := range w.cfg.Instances {
		st.GTIDExecutedByInstance[name(i)] = start
	}
	at := metav1.NewTime(epoch)
	st.EstablishedAt, st.GTIDExecutedUpdatedAt = &at, &at
	if n := int32(w.cfg.SemiSync); n > 0 { // #nosec G115 -- at most five
		st.SemiSync = &api.SemiSyncStatus{Configured: n, Effective: n, Active: true}
	}
	a.cluster = &stored{c: c}
	a.lease = &leaseObject{}
}

func (a *apiServer) uid(i int) string {
	a.uids++
	return fmt.Sprintf("pod-%d-%d", i+1, a.uids)
}

func (a *apiServer) next() int {
	a.version++
	return a.version
}

// putCluster stores a status if the version that was read is the present one.
func (a *apiServer) putCluster(read *stored, status *api.ClusterStatus, who string) (*stored, bool) {
	if read.version != a.cluster.version {
		return nil, false
	}
	c := *read.c
	c.Status = *status
	a.w.clusterWritten(a.cluster.c, &c, who)
	a.store(&c)
	return a.cluster, true
}

// clearAnnotation removes an annotation that has still this value.
func (a *apiServer) clearAnnotation(key, value string) bool {
	if there, ok := a.cluster.c.Annotations[key]; !ok || there != value {
		return false
	}
	a.annotate(map[string]*string{key: nil})
	return true
}

// annotate changes annotations of the Cluster, whatever version it has; nil removes one.
func (a *apiServer) annotate(change map[string]*string) {
	c := *a.cluster.c
	c.Annotations = maps.Clone(c.Annotations)
	if c.Annotations == nil {
		c.Annotations = map[string]string{}
	}
	for key, value := range change {
		if value == nil {
			delete(c.Annotations, key)
		} else {
			c.Annotations[key] = *value
		}
	}
	a.store(&c)
}

// store makes this the present Cluster, and tells who watches.
func (a *apiServer) store(c *api.Cluster) {
	a.cluster = &stored{version: a.next(), c: c}
	now := a.cluster
	for _, i := range a.w.inst {
		m := i.mgr
		a.w.watchEvent(m.p, i.n, func() { m.sawCluster(now) })
	}
	a.w.watchEvent(a.w.op.p, a.w.net.operator, func() { a.w.op.sawCluster(now) })
}

// putLease stores a Lease if the version that was read is the present one.
func (a *apiServer) putLease(next leaseObject, read int) (*leaseObject, bool) {
	if read != a.lease.version {
		return nil, false
	}
	next.version = a.next()
	a.w.leaseWritten(a.lease, &next)
	a.lease = &next
	for _, i := range a.w.inst {
		m := i.mgr
		a.w.watchEvent(m.p, i.n, func() { m.sawLease(&next) })
	}
	a.w.watchEvent(a.w.op.p, a.w.net.operator, func() { a.w.op.sawLease(&next) })
	return &next, true
}

// putPod stores a Pod; nil removes it.
func (a *apiServer) putPod(i int, pod *podObject) {
	if pod != nil {
		next := *pod
		next.version = a.next()
		pod = &next
	}
	before := a.pods[i]
	a.pods[i] = pod
	a.w.podWritten(i, before, pod)
	version := a.next()
	a.w.watchEvent(a.w.op.p, a.w.net.operator, func() { a.w.op.sawPod(i, version, pod) })
	k := a.w.inst[i]
	a.w.watchEvent(k.kubelet, i, func() { k.sawPod(pod) })
}

// patchPod changes the Pod of this UID; false when there is none.
func (a *apiServer) patchPod(i int, uid string, change func(*podObject)) bool {
	pod := a.pods[i]
	if pod == nil || pod.uid != uid {
		return false
	}
	next := *pod
	change(&next)
	if next == *pod {
		return true
	}
	a.putPod(i, &next)
	return true
}

// watchEvent tells a process of a change. One that does not arrive is made up for when the watch works again.
func (w *World) watchEvent(p *proc, end int, tell func()) {
	w.after(p, w.hop(), func() {
		if w.net.passes(w.net.api, end) && !w.stale(end) {
			tell()
		}
	})
}

// stale tells that the watches of an end stand still while its calls get through.
func (w *World) stale(end int) bool {
	if end == w.net.operator {
		return w.op.stale
	}
	return w.inst[end].mgr.stale
}

// rewatch shows an end everything as it is now: a watch was broken and begins anew.
func (w *World) rewatch(end int) {
	late := w.between(50*time.Millisecond, 3*time.Second)
	if end == w.net.operator {
		w.after(w.op.p, late, w.op.list)
		return
	}
	i := w.inst[end]
	w.after(i.mgr.p, late, i.mgr.list)
	w.after(i.kubelet, late, func() { i.list() })
}
