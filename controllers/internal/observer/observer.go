package observer

import (
	"context"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// Options configure an Observer.
type Options struct {
	Log logr.Logger
	// Now is a clock with a monotonic reading. Default: time.Now.
	Now func() time.Time
	// Port of the control API. Default: api.PortControl.
	Port int
	// Silence is how long a stream may say nothing. Default: three heartbeats.
	Silence time.Duration
}

// Target is an instance's Pod as it is now.
type Target struct {
	Instance string
	PodUID   string
	// PodIP is empty while the Pod has none; then nothing is asked.
	PodIP string
}

// Sight is what is known of one instance.
type Sight struct {
	// Report is the last one; nil while the instance is silent.
	Report *protocol.Report
	// Age is how long ago Report arrived.
	Age time.Duration
	// Asked tells that an attempt to reach the present Pod has finished, one way or the other.
	Asked bool
}

// Observer follows the instances of many Clusters.
type Observer struct {
	o    Options
	ctx  context.Context //nolint:containedctx // the life of all streams
	stop context.CancelFunc

	mu     sync.Mutex
	groups map[types.NamespacedName]*group
	queues []func(reconcile.Request)
	wait   sync.WaitGroup
}

// New makes an Observer that follows nobody yet.
func New(o Options) *Observer {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Port == 0 {
		o.Port = api.PortControl
	}
	if o.Silence == 0 {
		o.Silence = 3 * protocol.WatchHeartbeat
	}
	ctx, stop := context.WithCancel(context.Background())
	return &Observer{o: o, ctx: ctx, stop: stop, groups: map[types.NamespacedName]*group{}}
}

// Start ends everything when ctx ends. It makes an Observer a manager's runnable.
func (o *Observer) Start(ctx context.Context) error {
	<-ctx.Done()
	o.Close()
	return nil
}

// Close ends all streams and returns when they have ended.
func (o *Observer) Close() {
	o.mu.Lock()
	o.stop()
	for key, g := range o.groups {
		g.close()
		delete(o.groups, key)
	}
	o.mu.Unlock()
	o.wait.Wait()
}

// Follow makes the targets, and no others, the instances of a Cluster that are listened to. What is known of
// a target stays known while its Pod is the same, new credentials included. Called again with the same
// arguments it does nothing.
func (o *Observer) Follow(cluster types.NamespacedName, clusterUID string, c Credentials, targets []Target) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() != nil {
		return nil
	}
	g := o.groups[cluster]
	if g != nil && g.clusterUID != clusterUID {
		g.close()
		g = nil
	}
	if g == nil {
		g = &group{observer: o, key: cluster, clusterUID: clusterUID, watchers: map[string]*watcher{}}
		o.groups[cluster] = g
	}
	if err := g.use(c); err != nil {
		return err
	}
	g.follow(targets)
	return nil
}

// Forget ends the streams of a Cluster that is gone.
func (o *Observer) Forget(cluster types.NamespacedName) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if g := o.groups[cluster]; g != nil {
		g.close()
		delete(o.groups, cluster)
	}
}

// Look is what is known of an instance now.
func (o *Observer) Look(cluster types.NamespacedName, instance string) Sight {
	w := o.watcher(cluster, instance)
	if w == nil {
		return Sight{}
	}
	return w.sight()
}

// Report is the last report of an instance, with its age; false when there is none.
func (o *Observer) Report(cluster types.NamespacedName, instance string) (report protocol.Report, age time.Duration, ok bool) {
	s := o.Look(cluster, instance)
	if s.Report == nil {
		return protocol.Report{}, 0, false
	}
	return *s.Report, s.Age, true
}

// Unasked tells that an instance is followed and no attempt to reach it has finished yet: its silence says nothing.
func (o *Observer) Unasked(cluster types.NamespacedName, instance string) bool {
	w := o.watcher(cluster, instance)
	return w != nil && !w.sight().Asked
}

// Changes is a source that puts a Cluster into a controller's queue when what is known of one of its
// instances has changed. Each controller needs a source of its own.
func (o *Observer) Changes() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.queues = append(o.queues, func(r reconcile.Request) { queue.Add(r) })
		return nil
	})
}

// wake puts a Cluster into every queue. A queue holds each Cluster once, so this never waits.
func (o *Observer) wake(cluster types.NamespacedName) {
	o.mu.Lock()
	queues := o.queues
	o.mu.Unlock()
	for _, add := range queues {
		add(reconcile.Request{NamespacedName: cluster})
	}
}

func (o *Observer) watcher(cluster types.NamespacedName, instance string) *watcher {
	o.mu.Lock()
	defer o.mu.Unlock()
	if g := o.groups[cluster]; g != nil {
		return g.watchers[instance]
	}
	return nil
}
