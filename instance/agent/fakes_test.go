package agent

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/lease"
	"cnmsql.co/operator/instance/protocol"
)

// testClock is the time of the bubble that a test runs in, plus what a machine slept meanwhile.
type testClock struct {
	start time.Time
	slept atomic.Int64
}

func newTestClock() *testClock { return &testClock{start: time.Now().Add(-time.Hour)} }

func (c *testClock) Now() time.Duration {
	return time.Since(c.start) + time.Duration(c.slept.Load())
}

// suspend is a machine that sleeps: no timer advances, the clock does.
func (c *testClock) suspend(d time.Duration) { c.slept.Add(int64(d)) }

var errDown = errors.New("the API server is down")

// testAPI is an API server with one Cluster and one Lease. Updates are conditional, and watches are told.
type testAPI struct {
	mu      sync.Mutex
	version int
	lease   *coordinationv1.Lease
	cluster *api.Cluster
	down    bool
	hanging bool
	// podStopping is written in the Pod.
	podStopping bool
	latency     func() time.Duration
	lost        int // answers to successful updates that are lost
	renewals    []time.Duration
	clock       Clock
	watches     map[*watch.RaceFreeFakeWatcher]string
	onUpdate    func(*api.Cluster)
	onWrite     func() // when an update of the Cluster arrives, before it is looked at
	onLease     func() // before the answer to an update of the Lease
}

func newTestAPI(clock Clock) *testAPI {
	a := &testAPI{clock: clock, version: 100, watches: map[*watch.RaceFreeFakeWatcher]string{}}
	a.lease = &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "c-primary", Namespace: "ns", ResourceVersion: "99"}}
	a.lease.Spec.LeaseDurationSeconds = new(int32(15))
	a.cluster = &api.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", ResourceVersion: "98"}}
	a.cluster.Spec.Instances = 3
	return a
}

// call is the way to the API server and back: it may take time, fail or never answer.
func (a *testAPI) call(ctx context.Context) error {
	a.mu.Lock()
	latency, hanging, down := a.latency, a.hanging, a.down
	a.mu.Unlock()
	if latency != nil {
		sleep(ctx, latency())
	}
	if hanging {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if down {
		return errDown
	}
	return nil
}

func (a *testAPI) outage(down, hanging bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down, a.hanging = down, hanging
}

func (a *testAPI) setPodStopping() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.podStopping = true
}

func (a *testAPI) next() string {
	a.version++
	return strconv.Itoa(a.version)
}

func (a *testAPI) Lease(ctx context.Context) (*coordinationv1.Lease, error) {
	if err := a.call(ctx); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lease.DeepCopy(), nil
}

func (a *testAPI) UpdateLease(ctx context.Context, l *coordinationv1.Lease) (*coordinationv1.Lease, error) {
	if err := a.call(ctx); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.ResourceVersion != a.lease.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, l.Name, errors.New("changed"))
	}
	a.storeLease(l)
	if a.onLease != nil {
		a.onLease()
	}
	if a.lost > 0 {
		a.lost--
		return nil, context.DeadlineExceeded
	}
	return a.lease.DeepCopy(), nil
}

func (a *testAPI) storeLease(l *coordinationv1.Lease) {
	a.lease = l.DeepCopy()
	a.lease.ResourceVersion = a.next()
	a.renewals = append(a.renewals, a.clock.Now())
	a.send("Lease", watch.Modified, a.lease.DeepCopy())
}

// hold makes somebody the holder, as if it had acquired the lease.
func (a *testAPI) hold(holder string) *coordinationv1.Lease {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := a.lease.DeepCopy()
	l.Spec.HolderIdentity = &holder
	a.storeLease(l)
	return a.lease.DeepCopy()
}

func (a *testAPI) holder() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return holderOf(a.lease)
}

func (a *testAPI) annotations() map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.lease.DeepCopy().Annotations
}

func (a *testAPI) Cluster(ctx context.Context) (*api.Cluster, error) {
	if err := a.call(ctx); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cluster.DeepCopy(), nil
}

func (a *testAPI) PodStopping(ctx context.Context, _, _ string) (bool, error) {
	err := a.call(ctx)
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.podStopping, err
}

// present is the Cluster as it is, for reading only.
func (a *testAPI) present() *api.Cluster {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cluster
}

func (a *testAPI) UpdateClusterStatus(ctx context.Context, c *api.Cluster) (*api.Cluster, error) {
	if err := a.call(ctx); err != nil {
		return nil, err
	}
	if a.onWrite != nil {
		a.onWrite()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.ResourceVersion != a.cluster.ResourceVersion {
		return nil, apierrors.NewConflict(schema.GroupResource{Resource: "clusters"}, c.Name, errors.New("changed"))
	}
	a.storeCluster(&c.Status)
	if a.lost > 0 {
		a.lost--
		return nil, context.DeadlineExceeded
	}
	return a.cluster.DeepCopy(), nil
}

func (a *testAPI) storeCluster(status *api.ClusterStatus) {
	a.cluster = a.cluster.DeepCopy()
	status.DeepCopyInto(&a.cluster.Status)
	a.cluster.ResourceVersion = a.next()
	if a.onUpdate != nil {
		a.onUpdate(a.cluster)
	}
	a.send("Cluster", watch.Modified, a.cluster.DeepCopy())
}

// change is what the operator or a user writes.
func (a *testAPI) change(f func(*api.ClusterStatus)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	status := a.cluster.Status.DeepCopy()
	f(status)
	a.storeCluster(status)
}

func (a *testAPI) status() *api.ClusterStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cluster.Status.DeepCopy()
}

func (a *testAPI) WatchCluster(ctx context.Context) (watch.Interface, error) {
	return a.open(ctx, "Cluster", func() runtime.Object { return a.cluster.DeepCopy() })
}

func (a *testAPI) WatchLease(ctx context.Context) (watch.Interface, error) {
	return a.open(ctx, "Lease", func() runtime.Object { return a.lease.DeepCopy() })
}

func (a *testAPI) open(ctx context.Context, kind string, present func() runtime.Object) (watch.Interface, error) {
	if err := a.call(ctx); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	w := watch.NewRaceFreeFake()
	a.watches[w] = kind
	w.Add(present())
	return w, nil
}

func (a *testAPI) send(kind string, event watch.EventType, o runtime.Object) {
	for w, k := range a.watches {
		if k == kind && !w.IsStopped() {
			w.Action(event, o)
		}
	}
}

// endWatches closes all watches, as an API server that restarts does.
func (a *testAPI) endWatches() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for w := range a.watches {
		w.Stop()
	}
	clear(a.watches)
}

// testFencer is a server that can be made read-only, unless it hangs or fails.
type testFencer struct {
	mu       sync.Mutex
	clock    Clock
	hangs    bool
	err      error
	gone     bool
	readOnly time.Duration // when, 0 never
	killed   time.Duration
	tries    int
}

func (f *testFencer) Demote(ctx context.Context, _ time.Duration) error {
	f.mu.Lock()
	f.tries++
	hangs, err := f.hangs, f.err
	f.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.readOnly = f.clock.Now()
	return nil
}

func (f *testFencer) Gone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.gone
}

func (f *testFencer) Kill() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.killed, f.gone = f.clock.Now(), true
}

func (f *testFencer) seen() (readOnly, killed time.Duration, tries int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.readOnly, f.killed, f.tries
}

// testVoters answers for the other instances; without answers nobody does.
type testVoters struct {
	mu       sync.Mutex
	clock    Clock
	answers  map[string]protocol.VouchAnswer
	known    []string // beyond a, b and c
	attached []string
	latency  time.Duration
	asked    []time.Duration
	// live, when set, answers instead; reached is for its use.
	reached atomic.Bool
	live    func(instance string, q protocol.VouchQuestion) (protocol.VouchAnswer, bool)
}

func (v *testVoters) Vouch(ctx context.Context, instance string, q protocol.VouchQuestion) (protocol.VouchAnswer, error) {
	v.mu.Lock()
	v.asked = append(v.asked, v.clock.Now())
	a, ok := v.answers[instance]
	latency, live := v.latency, v.live
	v.mu.Unlock()
	sleep(ctx, latency)
	if live != nil {
		a, ok = live(instance, q)
	}
	if !ok {
		<-ctx.Done()
	}
	return a, ctx.Err()
}

// vouch makes the given instances vouch from now on, and no other.
func (v *testVoters) vouch(instances ...string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answers = map[string]protocol.VouchAnswer{}
	for _, i := range instances {
		v.answers[i] = protocol.VouchAnswer{From: i, Vouches: true}
	}
}

// say makes one instance answer so.
func (v *testVoters) say(a protocol.VouchAnswer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answers[a.From] = a
}

func (v *testVoters) view() lease.View {
	v.mu.Lock()
	defer v.mu.Unlock()
	return lease.View{Known: true, Generation: 4, Primary: "b", Instances: append([]string{"b", "a", "c"}, v.known...)}
}

func (v *testVoters) replicas(context.Context) ([]string, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.attached, nil
}

// background runs something until the test ends.
func background(t *testing.T, runs ...func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, run := range runs {
		group.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("a part has ended: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
}

func discard() logr.Logger { return logr.Discard() }
