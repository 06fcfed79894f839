package agent

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// closed is a primary that was opened, and that somebody makes read-only now.
func closed(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.primary()
	w.start()
	time.Sleep(time.Second)
	if !w.server.now().Writable() {
		t.Fatal(w.reporter.Report().Role.Doing)
	}
	w.close()
	return w
}

// close is what a person does to a running server.
func (w *world) close() {
	w.server.alter(func(m *protocol.MySQL) { m.ReadOnly, m.SuperReadOnly = true, true })
}

// opensWithin tells whether the server is writable after some time, which is looked at each second.
func (w *world) opensWithin(d time.Duration) bool {
	for range int(d / time.Second) {
		time.Sleep(time.Second)
		if w.server.now().Writable() {
			return true
		}
	}
	return false
}

func TestAServerThatSomebodyElseClosedIsOpenedAgainAndCounted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := closed(t)
		if !w.opensWithin(10 * time.Second) {
			t.Fatal(w.reporter.Report().Role.Doing)
		}
		if r := w.reporter.Report().Role; r.Reasserts != 1 || r.Generation != 3 {
			t.Errorf("%+v", r)
		}
		at, err := time.Parse(time.RFC3339, w.api.annotations()[api.AnnotationReasserted])
		if err != nil || time.Since(at) > 15*time.Second {
			t.Errorf("recorded %s, %v", at, err)
		}
		// The second time it waits until the first is long enough ago, also for a manager that has started anew.
		w.close()
		if w.opensWithin(4 * time.Minute) {
			t.Fatal("opened over and over")
		}
		if !w.opensWithin(2 * time.Minute) {
			t.Fatal(w.reporter.Report().Role.Doing)
		}
		if n := w.reporter.Report().Role.Reasserts; n != 2 {
			t.Errorf("%d re-asserts", n)
		}
	})
}

func TestTheRecordIsWrittenBeforeTheServerIsOpened(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := closed(t)
		early := false
		w.server.mu.Lock()
		w.server.onStep = func(step string, _ *protocol.MySQL) {
			early = early || step == "open writes" && w.keeper.Recorded(api.AnnotationReasserted) == ""
		}
		w.server.mu.Unlock()
		if !w.opensWithin(10*time.Second) || early {
			t.Errorf("opened before it was recorded: %v", early)
		}
	})
}

func TestTheMinimumTimeIsTheFailoverPolicys(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := &api.Cluster{}
	stamp := func(ago time.Duration) string { return now.Add(-ago).Format(time.RFC3339) }
	policy := &api.Cluster{}
	policy.Spec.FailoverPolicy = &api.FailoverPolicy{MinTimeBetweenFailovers: &metav1.Duration{Duration: time.Hour}}
	for _, k := range []struct {
		name   string
		c      *api.Cluster
		record string
		want   time.Duration
	}{
		{"never before", c, "", 0},
		{"a minute ago", c, stamp(time.Minute), 4 * time.Minute},
		{"long ago", c, stamp(6 * time.Minute), 0},
		{"without a Cluster", nil, stamp(time.Minute), 4 * time.Minute},
		{"a clock that is a little wrong", c, stamp(-time.Minute), 5 * time.Minute},
		{"one that is very wrong", c, stamp(-time.Hour), 0},
		{"nonsense", c, "yesterday", 0},
		{"with a policy", policy, stamp(time.Minute), 59 * time.Minute},
	} {
		if got := untilReassert(k.c, k.record, now); got != k.want {
			t.Errorf("%s: %s, want %s", k.name, got, k.want)
		}
	}
}

// What this manager closed itself, and what boots read-only, is opened at once and counts as nothing.
func TestOwnClosingsAreNoReassert(t *testing.T) {
	for name, close := range map[string]func(*world){
		"a fence": func(w *world) {
			w.api.outage(true, false)
			time.Sleep(20 * time.Second)
			w.api.outage(false, false)
		},
		"a restart of the server": func(w *world) {
			w.server.become(protocol.ServerDown, 0)
			time.Sleep(time.Second)
			w.server.become(protocol.ServerRunning, 9)
		},
		"a step-down that was ended": func(w *world) {
			w.transition(api.TransitionSwitchover, self, "c-3")
			time.Sleep(3 * time.Second)
			w.api.change(func(s *api.ClusterStatus) { s.PrimaryTransition = nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := newWorld(t)
				w.primary()
				w.start()
				time.Sleep(time.Second)
				w.peers.mu.Lock()
				delete(w.peers.reports, "c-3") // a re-assert would wait for it
				w.peers.mu.Unlock()
				close(w)
				if !w.opensWithin(15 * time.Second) {
					t.Fatalf("%s: %s", w.reporter.Report().Role.Doing, w.server.done())
				}
				if n := w.reporter.Report().Role.Reasserts; n != 0 || w.api.annotations()[api.AnnotationReasserted] != "" {
					t.Errorf("%d re-asserts", n)
				}
			})
		})
	}
}

func TestASilentInstanceHoldsUpTheReassert(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		time.Sleep(time.Second)
		w.peers.mu.Lock()
		gone := w.peers.reports["c-3"]
		delete(w.peers.reports, "c-3")
		w.peers.mu.Unlock()
		w.close()
		if w.opensWithin(time.Minute) {
			t.Fatal("opened although c-3 was not seen")
		}
		w.peers.mu.Lock()
		w.peers.reports["c-3"] = gone
		w.peers.mu.Unlock()
		if !w.opensWithin(20 * time.Second) {
			t.Error(w.reporter.Report().Role.Doing)
		}
	})
}
