package agent

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/internal/apitest"
)

func newKube(t *testing.T) (*Kube, *apitest.Server) {
	t.Helper()
	s := apitest.New(t, api.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns"}})
	k, err := NewKube(s.Config(), "ns", "c")
	if err != nil {
		t.Fatal(err)
	}
	return k, s
}

func TestUpdatesAreConditional(t *testing.T) {
	k, s := newKube(t)
	c, err := k.Cluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c.Status.CurrentPrimary = "c-1"
	stored, err := k.UpdateClusterStatus(t.Context(), c)
	if err != nil || stored.Status.CurrentPrimary != "c-1" || stored.ResourceVersion == c.ResourceVersion {
		t.Fatalf("%+v %v", stored, err)
	}
	if _, err := k.UpdateClusterStatus(t.Context(), c); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v", err)
	}
	l, err := k.Lease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.Spec.HolderIdentity = new("c-1/1")
	if _, err := k.UpdateLease(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if _, err := k.UpdateLease(t.Context(), l); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v", err)
	}
	if got := s.Lease(); holderOf(&got) != "c-1/1" {
		t.Errorf("held by %q", holderOf(&got))
	}
}

func TestAPodIsStoppingWhenItIsSaidSoOrGone(t *testing.T) {
	for _, c := range []struct {
		name string
		pod  *metav1.ObjectMeta
		want bool
	}{
		{"it runs", &metav1.ObjectMeta{Name: "c-1", UID: "u1"}, false},
		{"it was deleted with a grace period", &metav1.ObjectMeta{Name: "c-1", UID: "u1", DeletionTimestamp: new(metav1.Now())}, true},
		{"another has its name", &metav1.ObjectMeta{Name: "c-1", UID: "u2"}, true},
		{"it is gone", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, s := newKube(t)
			if c.pod != nil {
				s.SetPod(*c.pod)
			}
			if got, err := k.PodStopping(t.Context(), "c-1", "u1"); err != nil || got != c.want {
				t.Errorf("%t %v", got, err)
			}
		})
	}
	k, s := newKube(t)
	s.Hang(true)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if got, err := k.PodStopping(ctx, "c-1", "u1"); err == nil || got {
		t.Errorf("nobody answered: %t %v", got, err)
	}
}

func event(t *testing.T, w watch.Interface) watch.Event {
	t.Helper()
	select {
	case e, ok := <-w.ResultChan():
		if !ok {
			t.Fatal("the watch has ended")
		}
		return e
	case <-time.After(10 * time.Second):
		t.Fatal("no event")
	}
	return watch.Event{}
}

func TestAWatchBeginsWithThePresentObject(t *testing.T) {
	k, s := newKube(t)
	w, err := k.WatchCluster(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if e := event(t, w); e.Type != watch.Added || e.Object.(*api.Cluster).Name != "c" {
		t.Errorf("event %+v", e)
	}
	s.Change(func(c *api.Cluster) { c.Status.TargetPrimary = "c-2" })
	if e := event(t, w); e.Type != watch.Modified || e.Object.(*api.Cluster).Status.TargetPrimary != "c-2" {
		t.Errorf("event %+v", e)
	}
	l, err := k.WatchLease(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Stop()
	if e := event(t, l); e.Type != watch.Added || e.Object.(*coordinationv1.Lease).Name != "c-primary" {
		t.Errorf("event %+v", e)
	}
}

func TestACallThatIsNotAnsweredEndsInTime(t *testing.T) {
	k, s := newKube(t)
	s.Hang(true)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	started := time.Now()
	if _, err := k.Lease(ctx); err == nil {
		t.Error("answered by nobody")
	}
	if d := time.Since(started); d > 2*time.Second {
		t.Errorf("took %s", d)
	}
	// The next call does not go down the connection of the one before.
	s.Hang(false)
	if _, err := k.Lease(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestTheWatcherFollowsARealWatchAcrossDisconnections(t *testing.T) {
	k, s := newKube(t)
	clock := BootClock{}
	changes := newSignal()
	keeper := NewKeeper(KeeperOptions{API: k, Clock: clock, Instance: "b", Holder: me, Fencer: &testFencer{clock: clock}, Changed: func() {}, Log: discard()})
	w := NewWatcher(k, clock, keeper, changes.set, discard())
	background(t, w.Run)
	await := func(what string, so func() bool) {
		t.Helper()
		deadline := time.After(15 * time.Second)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for !so() {
			select {
			case <-deadline:
				t.Fatal(what)
			case <-tick.C:
			}
		}
	}
	await("the Cluster is not seen", func() bool { return w.Cluster() != nil && keeper.Facts().Known })
	if got := w.Cluster().Spec.MaxStopDelay; got != api.DefaultMaxStopDelay {
		t.Errorf("seen without defaults: %d", got)
	}
	s.Disconnect()
	s.Change(func(c *api.Cluster) { c.Status.CurrentPrimary = "c-3" })
	s.ChangeLease(func(l *coordinationv1.Lease) { l.Spec.HolderIdentity = new("c-3/1") })
	await("a change after a disconnection is not seen", func() bool {
		return w.Cluster().Status.CurrentPrimary == "c-3" && keeper.Facts().Holder == "c-3/1"
	})
	if n := s.Calls("GET cluster"); n != 0 {
		t.Errorf("%d reads beside the watch", n)
	}
}
