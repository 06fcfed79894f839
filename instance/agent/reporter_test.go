package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"cnmsql.co/operator/instance/protocol"
)

// listener collects the lines of one watch.
type listener struct {
	lines []protocol.Report
	at    []time.Duration
}

func (w *world) listen() *listener {
	w.t.Helper()
	l := &listener{}
	lines, end := w.reporter.Subscribe()
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case line := <-lines:
				var r protocol.Report
				if err := json.Unmarshal(line, &r); err != nil {
					w.t.Errorf("line %q: %v", line, err)
				}
				l.lines, l.at = append(l.lines, r), append(l.at, w.clock.Now())
			case <-stop:
				return
			}
		}
	}()
	w.t.Cleanup(func() {
		end()
		close(stop)
		<-done
	})
	return l
}

func TestAWatchBeginsWithThePresentReport(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		l := w.listen()
		synctest.Wait()
		if len(l.lines) != 1 || l.lines[0].Instance != self || l.lines[0].MySQL == nil || l.lines[0].Role.Name != "replica" {
			t.Fatalf("lines %+v", l.lines)
		}
	})
}

func TestAQuietInstanceIsHeardEveryHeartbeat(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		l := w.listen()
		time.Sleep(time.Minute)
		synctest.Wait()
		for i := 1; i < len(l.at); i++ {
			if gap := l.at[i] - l.at[i-1]; gap > protocol.WatchHeartbeat {
				t.Fatalf("%s between two lines", gap)
			}
			if l.lines[i].Sequence <= l.lines[i-1].Sequence {
				t.Fatal("the sequence does not grow")
			}
		}
		if n := len(l.lines); n < 30 || n > 45 {
			t.Errorf("%d lines in a minute of quiet", n)
		}
	})
}

func TestTransactionsAloneAreToldOnceASecond(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		l := w.listen()
		for i := range 200 {
			time.Sleep(50 * time.Millisecond)
			w.server.alter(func(m *protocol.MySQL) { m.Executed = gtids(t, fmt.Sprintf("%s:1-%d", uuidA, 101+i)) })
			w.wake() // as steps of the role would
		}
		synctest.Wait()
		if n := len(l.lines); n < 9 || n > 12 {
			t.Errorf("%d lines in 10 s", n)
		}
		if !l.lines[len(l.lines)-1].MySQL.Executed.Contains(gtids(t, uuidA+":1-270")) {
			t.Error("the last line is old")
		}
	})
}

func TestADeadServerIsToldAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.primary()
		w.start()
		l := w.listen()
		time.Sleep(700 * time.Millisecond)
		w.server.become(protocol.ServerDown, 0)
		died := w.clock.Now()
		synctest.Wait()
		for i, r := range l.lines {
			if r.Server.State == protocol.ServerDown {
				if r.MySQL != nil || l.at[i] != died {
					t.Errorf("told after %s: %+v", l.at[i]-died, r)
				}
				return
			}
		}
		t.Error("not told")
	})
}

func TestAServerThatDoesNotAnswerHasNoFacts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		w.server.mu.Lock()
		w.server.errs["read"] = errors.New("it hangs")
		w.server.mu.Unlock()
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if r := w.reporter.Report(); r.MySQL != nil || r.Server.State != protocol.ServerRunning {
			t.Errorf("report %+v", r)
		}
	})
}

func TestAFreshReportIsReadForTheQuestion(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		w.replica()
		w.start()
		w.server.alter(func(m *protocol.MySQL) { m.Executed = gtids(t, uuidA+":1-500") })
		if r := w.reporter.Fresh(t.Context()); r.MySQL == nil || !r.MySQL.Executed.Equal(gtids(t, uuidA+":1-500")) {
			t.Errorf("old facts: %+v", r.MySQL)
		}
		time.Sleep(time.Millisecond)
		// A server that answers too late gives no answer, not an old one.
		w.server.mu.Lock()
		w.server.slow = 10 * time.Second
		w.server.mu.Unlock()
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		for _, ctx := range []context.Context{short, t.Context()} {
			if r := w.reporter.Fresh(ctx); r.MySQL != nil {
				t.Errorf("old facts: %+v", r.MySQL)
			}
		}
	})
}

func TestAnInstanceThatIsBeingMadeSaysHowFarItIs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		background(t, w.keeper.Run, w.watcher.Run, w.loop.Run, w.reporter.Run)
		w.settle()
		w.instance.Progress(&protocol.Provision{Step: "cloning", Percent: 40, Attempts: 2, LastError: "refused"})
		r := w.reporter.Report()
		if r.Server.State != protocol.ServerProvisioning || r.Provision == nil || r.Provision.Percent != 40 || r.MySQL != nil {
			t.Errorf("report %+v", r)
		}
		if r.Role.Name != "none" {
			t.Errorf("role %+v", r.Role)
		}
		w.wantSteps() // whatever runs there is not its server yet
		w.instance.Provisioned()
		if r := w.reporter.Report(); r.Provision != nil || r.Server.State != protocol.ServerRunning {
			t.Errorf("report %+v", r)
		}
	})
}

func TestASlowReaderMissesLinesButNotTheLast(t *testing.T) {
	lines := make(chan []byte, 1)
	for i := range 5 {
		offer(lines, []byte{byte(i)})
	}
	if got := <-lines; got[0] != 4 {
		t.Errorf("line %d", got[0])
	}
}

// The manager must end although its volume does not answer.
func TestAFileSystemThatDoesNotAnswerHoldsNothingUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		answer := make(chan struct{})
		w.reporter.o.Volumes = func() []protocol.Volume {
			<-answer
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.reporter.Run(ctx) }()
		time.Sleep(time.Minute)
		if r := w.reporter.Report(); r.Volumes != nil || w.reporter.NoRoom() {
			t.Errorf("volumes %+v", r.Volumes)
		}
		cancel()
		synctest.Wait()
		select {
		case <-ended:
		default:
			t.Error("the reporter waits for the file system")
		}
		close(answer)
	})
}
