package watchdog

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"cnmsql.co/operator/instance/mysqld"
)

// role is what this program is instead of a test: a manager with a server and a watchdog, or one of these.
const role = "CNMSQL_WATCHDOG_TEST"

// patience is for what has no bound of its own; the machine may be busy.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "server":
		time.Sleep(time.Hour)
	case "watchdog":
		var b *Board
		if b, err = OpenBoard(os.NewFile(3, "board")); err == nil {
			err = Run(b, os.Stderr)
		}
	case "manager":
		err = manage()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// self runs this program as something else. Nothing of this process's environment is handed on: a second value of role
// would make every child another manager, without end.
func self(as string) mysqld.Command {
	return mysqld.Command{Args: []string{"/proc/self/exe"}, Env: []string{role + "=" + as}}
}

// life is how long the stand-in of a manager lets its server live without another word.
const life = time.Second

// manage is a manager that does nothing but move the deadline.
func manage() error {
	reaper := mysqld.NewReaper(logr.Discard())
	guard, err := NewGuard(Options{Reaper: reaper, Command: func() mysqld.Command { return self("watchdog") }, Log: logr.Discard()})
	if err != nil {
		return err
	}
	go func() { _ = guard.Run(context.Background()) }()
	server, err := reaper.Start(self("server"))
	if err != nil {
		return err
	}
	guard.SetServer(server.Pid())
	said := false
	for {
		now, err := bootTime()
		if err != nil {
			return err
		}
		guard.Arm(now + life)
		if !said && guard.Ready(server.Pid()) == nil {
			fmt.Println(server.Pid())
			said = true
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// family is a stand-in of a manager with its server and its watchdog.
type family struct {
	t               *testing.T
	manager, server int
}

func newFamily(t *testing.T) *family {
	t.Helper()
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), role+"=manager")
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	f := &family{t: t, manager: c.Process.Pid}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if f.server, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *family) signal(pid int, s syscall.Signal) {
	f.t.Helper()
	if err := syscall.Kill(pid, s); err != nil {
		f.t.Fatal(err)
	}
}

// watchdogs are the living children of the manager besides its server.
func (f *family) watchdogs() (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", f.manager))
	for _, task := range tasks {
		text, _ := os.ReadFile(task)
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil && pid != f.server && alive(pid) {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func (f *family) watchdog() int {
	f.t.Helper()
	pids := f.watchdogs()
	if len(pids) != 1 {
		f.t.Fatalf("%d watchdogs", len(pids))
	}
	return pids[0]
}

// alive tells that a process runs or is stopped; one that has ended and waits for its parent is not.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	after := string(text[strings.LastIndexByte(string(text), ')')+1:])
	return !strings.HasPrefix(after, " Z") && !strings.HasPrefix(after, " X")
}

// await waits until something is so and returns how long that took.
func await(t *testing.T, what string, so func() bool) time.Duration {
	t.Helper()
	started := time.Now()
	for !so() {
		if time.Since(started) > patience {
			t.Fatalf("not so: %s", what)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(started)
}

func (f *family) serverEnds() time.Duration {
	f.t.Helper()
	return await(f.t, "the server is killed", func() bool { return !alive(f.server) })
}

// lives asserts that the server outlives several deadlines.
func (f *family) lives() {
	f.t.Helper()
	for end := time.Now().Add(3 * life); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if !alive(f.server) {
			f.t.Fatal("the server was killed although its manager moves the deadline")
		}
	}
}

func TestAManagerThatStandsStillLosesItsServer(t *testing.T) {
	f := newFamily(t)
	f.lives()
	f.signal(f.manager, syscall.SIGSTOP)
	took := f.serverEnds()
	t.Logf("killed %s after the manager was stopped, with a deadline of %s", took, life)
	if took < life/2 || took > life+2*lookEvery {
		t.Errorf("killed after %s", took)
	}
}

func TestAServerThatIsStoppedIsKilledAsWell(t *testing.T) {
	f := newFamily(t)
	f.signal(f.server, syscall.SIGSTOP)
	f.signal(f.manager, syscall.SIGSTOP)
	f.serverEnds()
}

func TestAWatchdogThatStandsStillOrEndsIsReplaced(t *testing.T) {
	for name, s := range map[string]syscall.Signal{"stands still": syscall.SIGSTOP, "ends": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			f := newFamily(t)
			first := f.watchdog()
			f.signal(first, s)
			took := await(t, "another watchdog runs", func() bool {
				pids := f.watchdogs()
				return len(pids) == 1 && pids[0] != first
			})
			t.Logf("replaced after %s", took)
			f.lives()
			f.signal(f.manager, syscall.SIGSTOP)
			f.serverEnds()
		})
	}
}

// Where all stand still nobody can act; whoever wakes first does so at once.
func TestWhenAllStoodStillTheWatchdogActsAsSoonAsItWakes(t *testing.T) {
	f := newFamily(t)
	watchdog := f.watchdog()
	for _, pid := range []int{watchdog, f.manager, f.server} {
		f.signal(pid, syscall.SIGSTOP)
	}
	time.Sleep(2 * life) // the fault itself: nothing happens meanwhile that could be waited for
	if !alive(f.server) {
		t.Fatal("killed by nobody")
	}
	f.signal(watchdog, syscall.SIGCONT)
	took := f.serverEnds()
	t.Logf("killed %s after the watchdog was woken", took)
	if took > 250*time.Millisecond {
		t.Errorf("killed only after %s", took)
	}
}

func TestAServerAndAWatchdogEndWithTheirManager(t *testing.T) {
	f := newFamily(t)
	watchdog := f.watchdog()
	f.signal(f.manager, syscall.SIGKILL)
	await(t, "both have ended", func() bool { return !alive(f.server) && !alive(watchdog) })
}

// alone is a watchdog without a manager.
func alone(t *testing.T) (*Board, *mysqld.Reaper) {
	t.Helper()
	reaper := mysqld.NewReaper(logr.Discard())
	t.Cleanup(reaper.Close)
	b, err := NewBoard()
	if err != nil {
		t.Fatal(err)
	}
	c := self("watchdog")
	c.Files = []*os.File{b.File()}
	if _, err := reaper.Start(c); err != nil {
		t.Fatal(err)
	}
	return b, reaper
}

func start(t *testing.T, r *mysqld.Reaper) *mysqld.Process {
	t.Helper()
	p, err := r.Start(self("server"))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// looks waits until the watchdog has looked so many times more.
func looks(t *testing.T, b *Board, n int64) {
	t.Helper()
	from := b.beats()
	await(t, "the watchdog looks", func() bool { return b.beats() >= from+n })
}

func TestOnlyTheServerThatRanWhenTheDeadlinePassedIsKilled(t *testing.T) {
	b, reaper := alone(t)
	first := start(t, reaper)
	b.SetServer(first.Pid())
	b.Arm(1)
	await(t, "the first is killed", func() bool { return !alive(first.Pid()) })
	second := start(t, reaper)
	b.SetServer(second.Pid())
	looks(t, b, 5)
	if !alive(second.Pid()) {
		t.Fatal("the server that was started after the deadline was killed for it")
	}
	b.Arm(2) // the next one that passes is its own
	await(t, "the second is killed", func() bool { return !alive(second.Pid()) })
}

func TestAStrangerWithTheServersProcessIDIsLeftAlone(t *testing.T) {
	b, reaper := alone(t)
	p := start(t, reaper)
	b.SetServer(p.Pid())
	b.w.start.Add(-1) // the server that was meant had started before
	b.Arm(1)
	looks(t, b, 5)
	if !alive(p.Pid()) {
		t.Fatal("a stranger was killed")
	}
	b.SetServer(0)
	looks(t, b, 5)
	if !alive(p.Pid()) {
		t.Fatal("killed although there is no server")
	}
}

func TestWithoutADeadlineNothingIsKilled(t *testing.T) {
	b, reaper := alone(t)
	p := start(t, reaper)
	b.SetServer(p.Pid())
	b.Arm(1 << 62)
	b.Disarm()
	looks(t, b, 3)
	if _, armed := b.Deadline(); armed || !alive(p.Pid()) {
		t.Error("killed")
	}
}

func TestWithoutAWatchdogNothingIsOpenedAndSoonNothingStaysOpen(t *testing.T) {
	reaper := mysqld.NewReaper(logr.Discard())
	t.Cleanup(reaper.Close)
	g, err := NewGuard(Options{Reaper: reaper, Command: func() mysqld.Command { return mysqld.Command{Args: []string{"/bin/false"}} }, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	if !g.Trusted() {
		t.Error("not trusted from the start, although nothing is known yet")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.Run(ctx)
	}()
	p := start(t, reaper)
	g.SetServer(p.Pid())
	g.Arm(1 << 62)
	await(t, "it is not trusted any more", func() bool { return !g.Trusted() })
	if err := g.Ready(p.Pid()); !errors.Is(err, ErrUnwatched) {
		t.Errorf("ready: %v", err)
	}
	cancel()
	<-ended
}

func TestAServerIsReadyOnlyWhenTheWatchdogKnowsIt(t *testing.T) {
	reaper := mysqld.NewReaper(logr.Discard())
	t.Cleanup(reaper.Close)
	g, err := NewGuard(Options{Reaper: reaper, Command: func() mysqld.Command { return self("watchdog") }, Log: logr.Discard()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = g.Run(ctx)
	}()
	p := start(t, reaper)
	g.SetServer(p.Pid())
	g.Arm(1 << 62)
	await(t, "it is ready", func() bool { return g.Ready(p.Pid()) == nil })
	if g.Ready(p.Pid()+1) == nil {
		t.Error("another server is ready")
	}
	g.Disarm()
	if g.Ready(p.Pid()) == nil {
		t.Error("ready without a deadline")
	}
	cancel()
	<-ended
	if g.alive.Load() {
		t.Error("alive after its end")
	}
}
