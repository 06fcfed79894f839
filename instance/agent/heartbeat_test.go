package agent

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// testStamper is a server's heartbeat.
type testStamper struct {
	mu     sync.Mutex
	stamps []int64 // the generation of each
	fills  int
	stuck  chan struct{} // a stamp waits for it; nil for none
	fail   error         // of what is written
	rows   []mysql.Stamp
	unread error
}

func (s *testStamper) Stamp(ctx context.Context, generation int64) error {
	s.mu.Lock()
	stuck, fail := s.stuck, s.fail
	s.mu.Unlock()
	if stuck != nil {
		select {
		case <-stuck:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if fail == nil {
		s.stamps = append(s.stamps, generation)
	}
	return fail
}

func (s *testStamper) FillStamps(context.Context) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fills++
	return 0, s.fail
}

func (s *testStamper) Stamps(context.Context) ([]mysql.Stamp, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rows, s.unread
}

func (s *testStamper) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.stamps)
}

// beating is a Heartbeat that runs, with what it looks at.
type beating struct {
	*Heartbeat
	server  *testStamper
	mu      sync.Mutex
	report  protocol.Report
	cluster *api.Cluster
}

func newBeating(t *testing.T) *beating {
	t.Helper()
	b := &beating{server: &testStamper{}, cluster: &api.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}}
	b.cluster.Default()
	b.cluster.Status.CurrentPrimary = "c-1"
	b.Heartbeat = NewHeartbeat(HeartbeatOptions{
		Server: b.server, Clock: newTestClock(),
		Cluster: func() *api.Cluster {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.cluster.DeepCopy()
		},
		Report: func() protocol.Report {
			b.mu.Lock()
			defer b.mu.Unlock()
			return b.report
		},
	})
	return b
}

func (b *beating) primary(generation int64) *beating {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report = protocol.Report{MySQL: &protocol.MySQL{}, Role: protocol.Role{Name: role.Primary, Generation: generation}}
	return b
}

func (b *beating) replica() *beating {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report = protocol.Report{MySQL: &protocol.MySQL{ReadOnly: true, SuperReadOnly: true}, Role: protocol.Role{Name: role.Replica}}
	return b
}

func (b *beating) start(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = b.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

func TestAPrimaryStampsEachIntervalAndFillsGapsOnceInAGeneration(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBeating(t).primary(4)
		b.start(t)
		time.Sleep(9500 * time.Millisecond)
		if n := b.server.count(); n != 10 || b.server.fills != 1 || b.server.stamps[9] != 4 {
			t.Errorf("%d stamps in 10 s, of %v; %d times gaps were filled", n, b.server.stamps, b.server.fills)
		}
		b.primary(5)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if b.server.fills != 2 {
			t.Errorf("in two generations gaps were filled %d times", b.server.fills)
		}
		if s := b.State(); s == nil || s.LagMillis != nil || s.WaitingMillis != 0 || s.StampError != "" {
			t.Errorf("state %+v", s)
		}
	})
}

func TestAStampThatWaitsIsToldAndNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBeating(t).primary(4)
		b.server.stuck = make(chan struct{})
		b.start(t)
		time.Sleep(59500 * time.Millisecond)
		if s := b.State(); s.WaitingMillis != 59_500 || s.StampError != "" {
			t.Errorf("after nearly a minute: %+v", s)
		}
		close(b.server.stuck)
		synctest.Wait()
		if n := b.server.count(); n != 1 {
			t.Errorf("%d stamps were under way", n)
		}
		if s := b.State(); s.WaitingMillis != 0 {
			t.Errorf("afterwards: %+v", s)
		}
	})
}

func TestNoStampIsBegunThatNobodyWouldAcknowledge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBeating(t).primary(4)
		b.server.fail = mysql.ErrUnacknowledged
		b.start(t)
		time.Sleep(59500 * time.Millisecond)
		if s := b.State(); b.server.count() != 0 || s.WaitingMillis != 59_500 || s.StampError != "" {
			t.Errorf("%d stamps, state %+v", b.server.count(), s)
		}
		b.server.mu.Lock()
		b.server.fail = nil
		b.server.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		if s := b.State(); b.server.count() == 0 || s.WaitingMillis != 0 {
			t.Errorf("with a replica: %d stamps, state %+v", b.server.count(), s)
		}
	})
}

func TestAStampThatFailsIsToldUntilOneSucceeds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBeating(t).primary(4)
		b.server.fail = errors.New("no space left")
		b.start(t)
		time.Sleep(1500 * time.Millisecond)
		if s := b.State(); s.StampError != "no space left" || b.server.fills != 0 {
			t.Errorf("state %+v, filled %d times", s, b.server.fills)
		}
		b.server.mu.Lock()
		b.server.fail = nil
		b.server.mu.Unlock()
		time.Sleep(time.Second)
		synctest.Wait()
		if s := b.State(); s.StampError != "" {
			t.Errorf("state %+v", s)
		}
	})
}

func TestAServerThatHasBecomeReadOnlyIsNoFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBeating(t).primary(4)
		b.server.fail = mysql.ErrReadOnly
		b.start(t)
		time.Sleep(1500 * time.Millisecond)
		if s := b.State(); s.StampError != "" {
			t.Errorf("state %+v", s)
		}
	})
}

func TestAPrimaryStampsAtOnceAndAReplicaByWhoeverStampedLast(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBeating(t).replica()
		b.cluster.Spec.Replication.Heartbeat.Interval.Duration = time.Minute
		// c-3 was the primary before, and its clock is ahead; c-2 was long ago.
		b.server.rows = []mysql.Stamp{{ServerID: 2, Generation: 1, At: time.Now().Add(-time.Hour)}, {ServerID: 3, Generation: 3, At: time.Now().Add(time.Hour)}, {ServerID: 1, Generation: 4, At: time.Now().Add(-2 * time.Minute)}}
		b.start(t)
		synctest.Wait()
		if s := b.State(); s.LagMillis == nil || *s.LagMillis != 120_000 {
			t.Fatalf("lag %+v", s.LagMillis)
		}
		// Between two readings it grows.
		time.Sleep(900 * time.Millisecond)
		if s := b.State(); *s.LagMillis != 120_900 {
			t.Errorf("lag %d ms", *s.LagMillis)
		}
		if b.server.count() != 0 {
			t.Error("a replica stamps")
		}
		b.primary(5).Wake()
		synctest.Wait()
		if n := b.server.count(); n != 1 {
			t.Errorf("%d stamps at the moment it became the primary", n)
		}
		b.Wake()
		synctest.Wait()
		if n := b.server.count(); n != 1 {
			t.Errorf("woken for nothing it stamps: %d", n)
		}
		if s := b.State(); s.LagMillis != nil {
			t.Errorf("a primary is behind by %d ms", *s.LagMillis)
		}
	})
}

func TestOfAClockThatIsAheadNobodyIsAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBeating(t).replica()
		b.server.rows = []mysql.Stamp{{ServerID: 1, Generation: 4, At: time.Now().Add(time.Hour)}}
		b.start(t)
		synctest.Wait()
		if s := b.State(); s.LagMillis == nil || *s.LagMillis != 0 {
			t.Errorf("lag %+v", s.LagMillis)
		}
	})
}

func TestALagThatCannotBeReadIsNotKnown(t *testing.T) {
	for name, change := range map[string]func(*beating){
		"no stamp":                      func(b *beating) { b.server.rows = nil },
		"a table that cannot be read":   func(b *beating) { b.server.rows, b.server.unread = nil, errors.New("gone away") },
		"a server that does not answer": func(b *beating) { b.report.MySQL = nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				b := newBeating(t).replica()
				b.server.rows = []mysql.Stamp{{ServerID: 1, Generation: 4, At: time.Now()}}
				b.start(t)
				synctest.Wait()
				if s := b.State(); s == nil || s.LagMillis == nil {
					t.Fatalf("before: %+v", s)
				}
				b.mu.Lock()
				b.server.mu.Lock()
				change(b)
				b.server.mu.Unlock()
				b.mu.Unlock()
				time.Sleep(time.Second)
				synctest.Wait()
				if s := b.State(); s == nil || s.LagMillis != nil {
					t.Errorf("state %+v", s)
				}
			})
		})
	}
}

func TestAStampThatAStepDownEndsIsNoFailure(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBeating(t).primary(4)
		b.server.stuck, b.server.fail = make(chan struct{}), errors.New("bad connection")
		b.start(t)
		synctest.Wait()
		b.replica()
		close(b.server.stuck)
		synctest.Wait()
		if s := b.State(); s.StampError != "" || s.WaitingMillis != 0 {
			t.Errorf("state %+v", s)
		}
	})
}

func TestWithoutTheHeartbeatNothingIsStampedOrKnown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBeating(t).primary(4)
		b.cluster.Spec.Replication.Heartbeat.Enabled = new(false)
		b.start(t)
		time.Sleep(time.Minute)
		if b.server.count() != 0 || b.State() != nil {
			t.Errorf("%d stamps, state %+v", b.server.count(), b.State())
		}
	})
}

func TestALagIsNoNews(t *testing.T) {
	r := protocol.Report{Heartbeat: &protocol.Heartbeat{LagMillis: new(int64(5)), WaitingMillis: 7}}
	material, content := shape(r)
	r.Heartbeat = &protocol.Heartbeat{LagMillis: new(int64(5000)), WaitingMillis: 9}
	if m, c := shape(r); string(m) != string(material) || string(c) != string(content) {
		t.Error("a report with another lag is told at once")
	}
	r.Heartbeat.StampError = "no space left"
	if m, _ := shape(r); string(m) == string(material) {
		t.Error("a stamp that failed is no news")
	}
}
