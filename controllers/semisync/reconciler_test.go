package semisync

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/fakeapi"
	"cnmsql.co/operator/instance/protocol"
)

// managers are the instances' managers as the observer shows them. calls are what was asked of them, each
// with the number of status writes that had happened by then.
type managers struct {
	reports map[string]*protocol.Report
	age     time.Duration
	server  *fakeapi.Server
	calls   []protocol.SemiSyncSettings
	written []int
	refuse  error
	unasked string
	of      *Reconciler
	events  *events.FakeRecorder
}

func (m *managers) Report(_ types.NamespacedName, instance string) (protocol.Report, time.Duration, bool) {
	r, ok := m.reports[instance]
	if !ok {
		return protocol.Report{}, 0, false
	}
	return *r, m.age, true
}

func (m *managers) Unasked(_ types.NamespacedName, instance string) bool {
	return m.unasked == instance
}

func (m *managers) SetSemiSync(_ context.Context, _ types.NamespacedName, _ string, s protocol.SemiSyncSettings) error {
	m.calls = append(m.calls, s)
	m.written = append(m.written, len(m.server.Writes))
	return m.refuse
}

func newBench(t *testing.T, given func(*facts)) (*fakeapi.Server, *managers, func() (ctrl.Result, error)) {
	t.Helper()
	f := healthy(t)
	given(&f)
	s := fakeapi.New(t, f.cluster)
	m := &managers{reports: f.reports, server: s}
	m.events = events.NewFakeRecorder(10)
	r := &Reconciler{Client: s, Instances: m, Events: m.events}
	m.of = r
	return s, m, func() (ctrl.Result, error) {
		return r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(f.cluster)})
	}
}

func TestSteadyStateWritesNothingHoweverTransactionsFlow(t *testing.T) {
	s, m, reconcile := newBench(t, func(*facts) {})
	for n := range 10 {
		for _, r := range m.reports {
			r.Sequence++
		}
		m.reports["c1-1"].MySQL.Executed = set(t, "1-10"+string(rune('0'+n)))
		if result, err := reconcile(); err != nil || result.RequeueAfter != 0 {
			t.Fatal(result, err)
		}
		if n == 0 {
			s.Taken()
		}
	}
	if writes := s.Taken(); len(writes) > 0 || len(m.calls) > 0 {
		t.Errorf("writes %v, calls %v", writes, m.calls)
	}
}

func TestLoweredNumberIsStoredBeforeThePrimaryIsTold(t *testing.T) {
	s, m, reconcile := newBench(t, func(f *facts) {
		f.cluster.Status.SemiSync.Effective = 2
		f.reports["c1-1"].MySQL.SemiSync.WaitFor = 2
	})
	if _, err := reconcile(); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(m.written, []int{1}) || m.calls[0].WaitFor != 1 {
		t.Errorf("asked %v after %v writes", m.calls, m.written)
	}
	if writes := s.Taken(); len(writes) != 1 || !strings.HasPrefix(writes[0], "apply status") {
		t.Errorf("writes %v", writes)
	}
}

func TestRefusalOfThePrimaryIsTriedAgain(t *testing.T) {
	_, m, reconcile := newBench(t, func(f *facts) { f.cluster.Spec.MinSyncReplicas = 2 })
	m.refuse = errors.New("not the primary of generation 3")
	if _, err := reconcile(); err == nil || !strings.Contains(err.Error(), "c1-1") {
		t.Errorf("error %v", err)
	}
}

func TestOldReportIsNoReport(t *testing.T) {
	s, m, reconcile := newBench(t, func(f *facts) { f.cluster.Status.SemiSync = nil })
	ackers := func() []string {
		t.Helper()
		if _, err := reconcile(); err != nil {
			t.Fatal(err)
		}
		c := &api.Cluster{}
		if err := s.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "c1"}, c); err != nil {
			t.Fatal(err)
		}
		return c.Status.SemiSync.Ackers
	}
	if got := ackers(); !slices.Equal(got, []string{"c1-2", "c1-3"}) {
		t.Errorf("ackers %v", got)
	}
	m.age = 10 * protocol.WatchHeartbeat
	m.reports["c1-1"].MySQL.SemiSync.WaitFor = 2
	if got := ackers(); len(got) != 0 || len(m.calls) != 0 {
		t.Errorf("ackers %v, calls %v", got, m.calls)
	}
}

func TestMemoryOfADeletedClusterIsGivenUp(t *testing.T) {
	r := &Reconciler{Client: fakeapi.New(t), Instances: &managers{}}
	key := types.NamespacedName{Namespace: "shop", Name: "c1"}
	r.remember(key, memory{raising: &raise{}})
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil || r.recall(key) != (memory{}) {
		t.Error("the raise of a Cluster that is gone is kept", err)
	}
}

func TestNothingIsLoweredBeforeEverybodyWasAsked(t *testing.T) {
	s, m, reconcile := newBench(t, func(f *facts) { two(f, 2, 2); delete(f.reports, "c1-3") })
	m.unasked = "c1-3"
	if _, err := reconcile(); err != nil {
		t.Fatal(err)
	}
	c := &api.Cluster{}
	get := func() int32 {
		t.Helper()
		if err := s.Live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "c1"}, c); err != nil {
			t.Fatal(err)
		}
		return c.Status.SemiSync.Effective
	}
	if n := get(); n != 2 || len(m.calls) > 0 {
		t.Errorf("before: effective %d, asked for %v", n, m.calls)
	}
	m.unasked = ""
	if _, err := reconcile(); err != nil {
		t.Fatal(err)
	}
	if n := get(); n != 1 || len(m.calls) != 1 || m.calls[0].WaitFor != 1 {
		t.Errorf("afterwards: effective %d, asked for %v", n, m.calls)
	}
}

// Whoever is being cloned answers without a server, and no event tells that commits go on waiting. They are let go in the
// end, and that is told.
func TestCommitsAreLetGoForAReplicaWhoseCloneStandsStill(t *testing.T) {
	_, m, reconcile := newBench(t, func(f *facts) {
		delete(f.reports, "c1-2")
		f.reports["c1-3"] = &protocol.Report{Instance: "c1-3", Provision: &protocol.Provision{Step: protocol.StepCloning, Stalled: true}}
		f.reports["c1-1"].MySQL.SemiSync = protocol.SemiSync{SourceEnabled: true, SourceActive: true, WaitFor: 1, Waiting: 1}
	})
	again := func() {
		t.Helper()
		if result, err := reconcile(); err != nil || result.RequeueAfter == 0 {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	again()
	if len(m.calls) > 0 {
		t.Errorf("at once: %v", m.calls)
	}
	for key, memory := range m.of.memory {
		memory.stuck = memory.stuck.Add(-letGoAfter)
		m.of.memory[key] = memory
	}
	again()
	if len(m.calls) != 1 || !m.calls[0].LetGo {
		t.Errorf("calls %v", m.calls)
	}
	if told := <-m.events.Events; !strings.Contains(told, api.EventCommitsLetGo) || !strings.Contains(told, "c1-3 cannot be cloned") {
		t.Errorf("told %q", told)
	}
	m.reports["c1-3"].Provision.Stalled = false
	if result, err := reconcile(); err != nil || result.RequeueAfter != 0 {
		t.Errorf("when the clone goes on: %+v, %v", result, err)
	}
}
