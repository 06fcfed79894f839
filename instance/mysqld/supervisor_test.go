package mysqld_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
)

// supervise starts a supervisor of a server that plays the parts one after the other, the last one for ever.
func supervise(t *testing.T, o mysqld.SupervisorOptions, parts ...string) (*mysqld.Supervisor, *atomic.Int32) {
	t.Helper()
	starts := &atomic.Int32{}
	o.Reaper = reaper()
	o.Log = logr.Discard()
	if o.Prepare == nil {
		o.Prepare = func(context.Context) (mysqld.Command, error) {
			n := min(int(starts.Add(1)), len(parts))
			return command(parts[n-1]), nil
		}
	}
	if o.Ready == nil {
		o.Ready = func(context.Context) error { return nil }
	}
	s := mysqld.NewSupervisor(o)
	s.Start()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return s, starts
}

func await(t *testing.T, s *mysqld.Supervisor, want func(mysqld.State) bool) mysqld.State {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	st, err := s.Await(ctx, want)
	if err != nil {
		t.Fatalf("the state stays %+v", st)
	}
	return st
}

func running(st mysqld.State) bool { return st.Server == protocol.ServerRunning }

func TestADeadServerIsReportedAtOnceAndStartedAgain(t *testing.T) {
	s, _ := supervise(t, mysqld.SupervisorOptions{FirstBackoff: 20 * time.Millisecond}, "serve")
	first := await(t, s, running)
	began := time.Now()
	s.Kill()
	down := await(t, s, func(st mysqld.State) bool { return st.Pid == 0 })
	t.Logf("reported after %v", time.Since(began))
	if down.Server != protocol.ServerDown || down.LastExit != "signal 9 (killed)" || down.Restarts != 1 {
		t.Errorf("the state of a dead server is %+v", down)
	}
	if down.Since.Before(began) {
		t.Errorf("down since %v, killed at %v", down.Since, began)
	}
	again := await(t, s, func(st mysqld.State) bool { return running(st) && st.Pid != first.Pid })
	if again.LastExit != "signal 9 (killed)" {
		t.Errorf("the state after the restart is %+v", again)
	}
}

func TestAServerThatKeepsEndingIsStartedWithGrowingPauses(t *testing.T) {
	s, starts := supervise(t, mysqld.SupervisorOptions{FirstBackoff: 50 * time.Millisecond, MaxBackoff: 200 * time.Millisecond}, "exit:0")
	began := time.Now()
	st := await(t, s, func(st mysqld.State) bool { return st.InARow == 5 })
	// Pauses of 50, 100, 200 and 200 ms lie between five ends.
	if took := time.Since(began); took < 550*time.Millisecond {
		t.Errorf("five starts within %v", took)
	}
	if starts.Load() != 5 || st.Restarts != 5 || st.LastExit != "exit code 0" || st.Server != protocol.ServerDown {
		t.Errorf("%d starts, state %+v", starts.Load(), st)
	}
}

func TestThePausesBeginAnewAfterASteadyRun(t *testing.T) {
	s, _ := supervise(t, mysqld.SupervisorOptions{FirstBackoff: 10 * time.Millisecond, MaxBackoff: time.Hour, SteadyAfter: 100 * time.Millisecond},
		"exit:1", "exit:1", "exit-after:150ms", "serve")
	st := await(t, s, func(st mysqld.State) bool { return running(st) && st.Restarts == 3 })
	if st.InARow != 1 {
		t.Errorf("%d ends in a row after a steady run, state %+v", st.InARow, st)
	}
}

func TestAServerThatAsksForARestartGetsItAtOnceAndUncounted(t *testing.T) {
	ready := make(chan struct{})
	o := mysqld.SupervisorOptions{FirstBackoff: time.Hour, Ready: func(context.Context) error {
		select {
		case <-ready:
		default:
			close(ready)
		}
		return nil
	}}
	s, _ := supervise(t, o, "exit:16", "serve")
	<-ready
	st := await(t, s, func(st mysqld.State) bool { return running(st) && st.LastExit == "exit code 16" })
	if st.Restarts != 0 {
		t.Errorf("a wanted restart was counted: %+v", st)
	}
}

func TestAServerThatEndsWithTheRestartCodeBeforeItEverAnsweredIsNotRestartedHot(t *testing.T) {
	never := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	s, starts := supervise(t, mysqld.SupervisorOptions{FirstBackoff: time.Hour, Ready: never}, "exit:16")
	await(t, s, func(st mysqld.State) bool { return st.Restarts == 1 })
	if starts.Load() != 1 {
		t.Errorf("%d starts", starts.Load())
	}
}

func TestStopEndsTheServerAndTheKeeping(t *testing.T) {
	s, starts := supervise(t, mysqld.SupervisorOptions{FirstBackoff: time.Millisecond}, "serve")
	pid := await(t, s, running).Pid
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	st := s.State()
	if st.Pid != 0 || st.Server != protocol.ServerDown || st.Restarts != 0 {
		t.Errorf("the state of a stopped server is %+v", st)
	}
	if err := syscall.Kill(pid, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d: %v", pid, err)
	}
	if starts.Load() != 1 {
		t.Errorf("%d starts", starts.Load())
	}
}

// stubborn is a server that is ready once it ignores SIGTERM.
func stubborn(t *testing.T) mysqld.SupervisorOptions {
	t.Helper()
	return listening(t, "stubborn", &atomic.Int32{})
}

// listening is a server that plays a part and is ready once it has set up what it does with signals.
func listening(t *testing.T, part string, starts *atomic.Int32) mysqld.SupervisorOptions {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return mysqld.SupervisorOptions{
		Prepare: func(context.Context) (mysqld.Command, error) {
			starts.Add(1)
			c := command(part)
			c.Files = []*os.File{w}
			return c, nil
		},
		Ready: func(context.Context) error {
			_, err := r.Read(make([]byte, 1))
			return err
		},
	}
}

func TestAStubbornServerIsKilledWhenTheTimeToStopIsOver(t *testing.T) {
	s, _ := supervise(t, stubborn(t))
	await(t, s, running)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if st := s.State(); st.Pid != 0 || st.LastExit != "signal 9 (killed)" {
		t.Errorf("the state is %+v", st)
	}
}

func TestASecondStopMayBeMoreUrgent(t *testing.T) {
	s, _ := supervise(t, stubborn(t))
	await(t, s, running)
	done := make(chan error, 1)
	go func() { done <- s.Stop(context.Background()) }()
	await(t, s, func(st mysqld.State) bool { return st.Server == protocol.ServerStopping })
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := errors.Join(s.Stop(ctx), <-done); err != nil {
		t.Fatal(err)
	}
}

func TestStopDuringAPauseReturnsAtOnce(t *testing.T) {
	s, _ := supervise(t, mysqld.SupervisorOptions{FirstBackoff: time.Hour}, "exit:1")
	await(t, s, func(st mysqld.State) bool { return st.Restarts == 1 })
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := s.Stop(ctx); err != nil || ctx.Err() != nil {
		t.Error(err, ctx.Err())
	}
}

func TestAStoppedSupervisorCanBeStartedAgain(t *testing.T) {
	s, starts := supervise(t, mysqld.SupervisorOptions{}, "serve")
	for n := int32(1); n <= 3; n++ {
		await(t, s, running)
		if err := s.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
		if starts.Load() != n {
			t.Fatalf("%d starts, want %d", starts.Load(), n)
		}
		s.Start()
		s.Start() // twice is once
	}
	await(t, s, running)
}

func TestAServerThatCannotBeStartedIsReported(t *testing.T) {
	tries := 0
	s, _ := supervise(t, mysqld.SupervisorOptions{FirstBackoff: time.Millisecond, Prepare: func(context.Context) (mysqld.Command, error) {
		if tries++; tries < 3 {
			return mysqld.Command{}, fmt.Errorf("no configuration")
		}
		return command("serve"), nil
	}})
	st := await(t, s, running)
	if st.Restarts != 2 || st.LastExit != "not started: no configuration" {
		t.Errorf("the state is %+v", st)
	}
}

func TestTheServerIsToldItsParent(t *testing.T) {
	out := newLines()
	c := mysqld.Managed(command("environment"))
	c.Output = out.take
	if _, err := reaper().Start(c); err != nil {
		t.Fatal(err)
	}
	told, parent, _ := strings.Cut(out.next(t), " ")
	if told != parent || told != fmt.Sprint(os.Getpid()) {
		t.Errorf("the server is told %s, its parent is %s", told, parent)
	}
}

func TestTheLastErrorLineIsInTheState(t *testing.T) {
	s, _ := supervise(t, mysqld.SupervisorOptions{FirstBackoff: time.Hour},
		"print:2026-01-02T03:04:05.678901Z 0 [ERROR] [MY-012592] [InnoDB] Operating system error number 28\n")
	await(t, s, func(st mysqld.State) bool { return strings.HasSuffix(st.LastError, "error number 28") })
}

func TestAServerThatIsHeldEndsAndIsNotStartedBeforeItsRelease(t *testing.T) {
	starts := &atomic.Int32{}
	s, _ := supervise(t, listening(t, "serve", starts))
	await(t, s, running)
	s.Hold(10 * time.Second)
	s.Hold(time.Hour) // it is held already
	st := await(t, s, func(st mysqld.State) bool { return st.Server == protocol.ServerFenced })
	if st.Pid != 0 || !st.Held || st.Restarts != 0 || st.LastExit != "exit code 0" {
		t.Errorf("the state is %+v", st)
	}
	s.Start() // changes nothing
	s.Release()
	if st := await(t, s, running); starts.Load() != 2 || st.Held {
		t.Errorf("%d starts, %+v", starts.Load(), st)
	}
	s.Release() // changes nothing
}

func TestAServerThatDoesNotEndInTimeIsKilledByItsHold(t *testing.T) {
	for _, within := range []time.Duration{0, 50 * time.Millisecond} {
		s, _ := supervise(t, stubborn(t))
		await(t, s, running)
		s.Hold(within)
		st := await(t, s, func(st mysqld.State) bool { return st.Server == protocol.ServerFenced })
		if st.LastExit != "signal 9 (killed)" {
			t.Errorf("within %s: %s", within, st.LastExit)
		}
	}
}

func TestAHoldWithoutTimeEndsAStopThatTakesTooLong(t *testing.T) {
	s, _ := supervise(t, stubborn(t))
	await(t, s, running)
	s.Hold(time.Hour)
	await(t, s, func(st mysqld.State) bool { return st.Server == protocol.ServerStopping })
	s.Hold(0)
	if st := await(t, s, func(st mysqld.State) bool { return st.Server == protocol.ServerFenced }); st.LastExit != "signal 9 (killed)" {
		t.Error(st.LastExit)
	}
}

// With no time at all it is not even asked to end: mysqld would answer clients whose commits nobody has acknowledged.
func TestAHoldWithoutTimeKillsAtOnce(t *testing.T) {
	s, _ := supervise(t, listening(t, "serve", &atomic.Int32{}))
	await(t, s, running)
	s.Hold(0)
	st := await(t, s, func(st mysqld.State) bool { return st.Server == protocol.ServerFenced })
	if st.LastExit != "signal 9 (killed)" {
		t.Error(st.LastExit)
	}
}

func TestAServerThatIsHeldBeforeItsStartIsNotStarted(t *testing.T) {
	starts := &atomic.Int32{}
	s := mysqld.NewSupervisor(mysqld.SupervisorOptions{
		Reaper: reaper(), Log: logr.Discard(), Ready: func(context.Context) error { return nil },
		Prepare: func(context.Context) (mysqld.Command, error) { starts.Add(1); return command("serve"), nil },
	})
	s.Hold(0)
	s.Start()
	await(t, s, func(st mysqld.State) bool { return st.Server == protocol.ServerFenced })
	if starts.Load() != 0 {
		t.Error("it was started")
	}
	s.Release()
	await(t, s, running)
	s.Hold(time.Second)
	await(t, s, func(st mysqld.State) bool { return st.Server == protocol.ServerFenced })
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if st := s.State(); st.Server != protocol.ServerDown {
		t.Errorf("stopped while held: %+v", st)
	}
}

func TestAHoldEndsThePauseBetweenTwoStarts(t *testing.T) {
	s, _ := supervise(t, mysqld.SupervisorOptions{FirstBackoff: time.Hour}, "exit:1", "serve")
	await(t, s, func(st mysqld.State) bool { return st.Restarts == 1 })
	s.Hold(time.Second)
	await(t, s, func(st mysqld.State) bool { return st.Server == protocol.ServerFenced })
	s.Release()
	await(t, s, running)
}
