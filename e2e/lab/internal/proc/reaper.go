package proc

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
)

// Reaper waits for all children of this process, also for those it inherits.
type Reaper struct {
	mu      sync.Mutex
	waiting map[int]chan<- syscall.WaitStatus
}

// NewReaper starts to reap.
func NewReaper() *Reaper {
	r := &Reaper{waiting: map[int]chan<- syscall.WaitStatus{}}
	sig := make(chan os.Signal, 8)
	signal.Notify(sig, syscall.SIGCHLD)
	go func() {
		for range sig {
			r.reap()
		}
	}()
	return r
}

// reap collects whatever has ended. Signals are merged, so one of them may
// stand for several children.
func (r *Reaper) reap() {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if err != nil || pid <= 0 {
			return
		}
		r.mu.Lock()
		if c, ok := r.waiting[pid]; ok {
			c <- ws
			delete(r.waiting, pid)
		}
		r.mu.Unlock()
	}
}

// Start runs argv with its output going to out. The channel gets the wait
// status once.
func (r *Reaper) Start(out *os.File, argv []string, attr *syscall.SysProcAttr) (int, <-chan syscall.WaitStatus, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return 0, nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	defer null.Close()
	c := make(chan syscall.WaitStatus, 1)
	// The lock is held over the fork: the child may end before its number is known here.
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{null.Fd(), out.Fd(), out.Fd()}, Sys: attr,
	})
	if err != nil {
		return 0, nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	r.waiting[pid] = c
	return pid, c, nil
}

// Run runs argv to its end. Its output goes to our own standard error.
func (r *Reaper) Run(argv ...string) error {
	_, c, err := r.Start(os.Stderr, argv, nil)
	if err != nil {
		return err
	}
	if ws := <-c; ws != 0 {
		return fmt.Errorf("%s: %s", strings.Join(argv, " "), Describe(ws))
	}
	return nil
}

// Describe says in words how a process ended.
func Describe(ws syscall.WaitStatus) string {
	if ws.Signaled() {
		return "ended by signal " + ws.Signal().String()
	}
	return fmt.Sprintf("exit status %d", ws.ExitStatus())
}
