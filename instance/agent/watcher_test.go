package agent

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

func TestAClusterIsNeverReplacedByAnOlderOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		clock := newTestClock()
		changes := 0
		w := NewWatcher(newTestAPI(clock), clock, nil, func() { changes++ }, discard())
		if w.Age() >= 0 {
			t.Errorf("age %s of nothing", w.Age())
		}
		at := func(version, primary string) *api.Cluster {
			return &api.Cluster{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}, Status: api.ClusterStatus{CurrentPrimary: primary}}
		}
		w.accept(at("100", "c-1"), clock.Now())
		w.accept(at("105", "c-2"), 0)
		w.accept(at("99", "c-9"), 0) // a watch that is behind; 105 is not below 99 as text only
		if got := w.Cluster().Status.CurrentPrimary; got != "c-2" {
			t.Errorf("primary %q", got)
		}
		w.accept(at("105", "c-2"), 0)
		if changes != 2 {
			t.Errorf("%d changes were told, want 2", changes)
		}
		time.Sleep(time.Minute)
		if w.Age() != time.Minute {
			t.Errorf("age %s", w.Age())
		}
		// A consistent read that began later than what is known is the truth, whatever its version: the API
		// server's data may have been restored.
		w.accept(at("50", "c-3"), clock.Now())
		if got := w.Cluster().Status.CurrentPrimary; got != "c-3" || w.Age() != 0 {
			t.Errorf("primary %q, age %s", got, w.Age())
		}
	})
}

// A request for a watch that was lost on its way is not waited for without end.
func TestAWatchThatDoesNotBeginIsOpenedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.api.outage(false, true)
		w.start()
		time.Sleep(time.Second)
		w.api.outage(false, false) // the requests that hang do so for good
		time.Sleep(openTime + lastRewatch)
		synctest.Wait()
		if w.watcher.Cluster() == nil || !w.keeper.Facts().Known {
			t.Error("the Cluster or its Lease is not seen")
		}
	})
}
