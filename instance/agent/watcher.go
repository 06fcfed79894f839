package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	api "cnmsql.co/operator/api/v1alpha1"
)

const (
	firstRewatch = 200 * time.Millisecond
	lastRewatch  = 5 * time.Second
	// openTime is how long a watch may take to begin.
	openTime = 5 * time.Second
)

// Watcher keeps the Cluster as last seen. What it has stands through an outage of the API server.
type Watcher struct {
	api    API
	clock  Clock
	keeper *Keeper
	log    logr.Logger
	// changed is called after each change of the Cluster, without locks.
	changed func()

	mu      sync.Mutex
	cluster *api.Cluster
	got     time.Duration // when cluster was accepted
	proof   time.Duration // when it was last known to be the present one
	deleted bool
}

// NewWatcher makes a Watcher. The Lease it sees goes to the keeper.
func NewWatcher(a API, clock Clock, keeper *Keeper, changed func(), log logr.Logger) *Watcher {
	return &Watcher{api: a, clock: clock, keeper: keeper, changed: changed, log: log}
}

// Cluster returns the Cluster with its defaults, for reading only; nil when none was seen yet.
func (w *Watcher) Cluster() *api.Cluster {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cluster
}

// Deleted tells that the Cluster as last seen is deleted, or being deleted: its Lease and its other instances
// go as well.
func (w *Watcher) Deleted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.deleted || w.cluster != nil && !w.cluster.DeletionTimestamp.IsZero()
}

// Age is how long ago the Cluster was known to be the present one, or -1 ms when it never was.
func (w *Watcher) Age() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cluster == nil {
		return -time.Millisecond
	}
	return w.clock.Now() - w.proof
}

// Run watches until ctx ends.
func (w *Watcher) Run(ctx context.Context) error {
	var group sync.WaitGroup
	group.Go(func() { w.follow(ctx, "Cluster", w.api.WatchCluster) })
	group.Go(func() { w.follow(ctx, "Lease", w.api.WatchLease) })
	group.Wait()
	return nil
}

// Live reads the Cluster and the Lease from the API server, both at once.
func (w *Watcher) Live(ctx context.Context) (*api.Cluster, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	asked := w.clock.Now()
	var leaseErr error
	var group sync.WaitGroup
	group.Go(func() {
		var lease *coordinationv1.Lease
		if lease, leaseErr = w.api.Lease(ctx); leaseErr == nil {
			w.keeper.observe(lease, asked)
		}
	})
	cluster, err := w.api.Cluster(ctx)
	group.Wait()
	if err = errors.Join(err, leaseErr); err != nil {
		return nil, err
	}
	return w.accept(cluster, asked), nil
}

// accept takes a Cluster that was asked for at the given time, unless a newer one is known, and returns it
// with its defaults.
func (w *Watcher) accept(cluster *api.Cluster, asked time.Duration) *api.Cluster {
	cluster = cluster.DeepCopy()
	cluster.Default()
	w.mu.Lock()
	now := w.clock.Now()
	fresh := w.cluster == nil || supersedes(cluster, w.cluster) || asked > w.got
	news := fresh && (w.cluster == nil || cluster.ResourceVersion != w.cluster.ResourceVersion)
	if fresh {
		w.cluster, w.got, w.proof, w.deleted = cluster, now, now, false
	}
	w.mu.Unlock()
	if news {
		w.changed()
	}
	return cluster
}

// follow keeps one watch open. Each begins with the present object, so nothing is missed between two.
func (w *Watcher) follow(ctx context.Context, what string, open func(context.Context) (watch.Interface, error)) {
	pause, failing := firstRewatch, false
	for ctx.Err() == nil {
		started := w.clock.Now()
		err := w.watchOnce(ctx, open)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err == nil || w.clock.Now()-started > lastRewatch:
			pause, failing = firstRewatch, false
		case !failing:
			w.log.Info("cannot watch; going on with what was last seen", "kind", what, "error", err.Error())
			failing = true
		}
		sleep(ctx, pause/2+rand.N(pause)) //nolint:gosec // spreading load needs no secrecy
		pause = min(2*pause, lastRewatch)
	}
}

func (w *Watcher) watchOnce(ctx context.Context, open func(context.Context) (watch.Interface, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A request that was swallowed on its way would be waited for without end.
	late := time.AfterFunc(openTime, cancel)
	stream, err := open(ctx)
	late.Stop()
	if err != nil {
		return err
	}
	defer stream.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, more := <-stream.ResultChan():
			if !more {
				return nil
			}
			if err := w.take(event); err != nil {
				return err
			}
		}
	}
}

func (w *Watcher) take(event watch.Event) error {
	switch event.Type {
	case watch.Error:
		return fmt.Errorf("the watch ended: %w", apierrors.FromObject(event.Object))
	case watch.Bookmark:
		if _, ok := event.Object.(*api.Cluster); ok {
			w.mu.Lock()
			w.proof = w.clock.Now()
			w.mu.Unlock()
		}
		return nil
	case watch.Deleted:
		// A deleted Cluster ends its Pods by itself; a deleted Lease is made anew by the operator. Until
		// then what was last seen stands.
		if _, ok := event.Object.(*api.Cluster); ok {
			w.mu.Lock()
			w.deleted = true
			w.mu.Unlock()
		}
		return nil
	case watch.Added, watch.Modified:
	}
	switch object := event.Object.(type) {
	case *api.Cluster:
		w.accept(object, 0)
	case *coordinationv1.Lease:
		w.keeper.observe(object, 0)
	}
	return nil
}

// sleep waits, or less when ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
