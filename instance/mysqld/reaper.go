package mysqld

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
)

// ErrReaperClosed is returned by Start after Close.
var ErrReaperClosed = errors.New("the reaper is closed")

// Reaper starts processes and waits for all of them, and for the orphans that the kernel hands to this
// process. It makes this process a subreaper, so that it is handed them when it is not process 1 as well.
type Reaper struct {
	log    logr.Logger
	starts chan startRequest
	quit   chan struct{}
	done   chan struct{}
	once   sync.Once

	mu       sync.Mutex
	children map[int]*Process
	orphans  int
}

type startRequest struct {
	argv []string
	attr *syscall.ProcAttr
	made func(pid int) *Process
	out  chan startResult
}

type startResult struct {
	process *Process
	err     error
}

// NewReaper begins to reap. The one thread that starts processes lives until Close: a process is killed
// when the thread that started it ends.
func NewReaper(log logr.Logger) *Reaper {
	r := &Reaper{
		log:      log,
		starts:   make(chan startRequest),
		quit:     make(chan struct{}),
		done:     make(chan struct{}),
		children: map[int]*Process{},
	}
	ready := make(chan struct{})
	go r.loop(ready)
	<-ready
	return r
}

// Close ends the reaping and kills what still runs of the processes that were started.
func (r *Reaper) Close() {
	r.once.Do(func() { close(r.quit) })
	<-r.done
}

// Orphans is how many processes were reaped that this process did not start.
func (r *Reaper) Orphans() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.orphans
}

func (r *Reaper) loop(ready chan<- struct{}) {
	// Never unlocked: the thread ends with this goroutine, and with it what it started.
	runtime.LockOSThread()
	defer close(r.done)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		r.log.Error(err, "becoming a subreaper")
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	close(ready)
	for {
		select {
		case <-ended:
			r.reap()
		case q := <-r.starts:
			p, err := r.fork(q)
			q.out <- startResult{p, err}
		case <-r.quit:
			r.killAll(ended)
			return
		}
	}
}

// fork and reap run on one goroutine, so a child cannot be reaped before it is known.
func (r *Reaper) fork(q startRequest) (*Process, error) {
	pid, err := syscall.ForkExec(q.argv[0], q.argv, q.attr)
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", q.argv[0], err)
	}
	p := q.made(pid)
	r.mu.Lock()
	r.children[pid] = p
	r.mu.Unlock()
	return p, nil
}

func (r *Reaper) reap() {
	for r.reapOne() {
	}
}

// reapOne waits under the lock that signal takes: until then the id belongs to nobody else.
func (r *Reaper) reapOne() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if errors.Is(err, syscall.EINTR) {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	if p, ours := r.children[pid]; ours {
		delete(r.children, pid)
		p.finish(exitOf(status))
	} else {
		r.orphans++
	}
	return true
}

func (r *Reaper) killAll(ended <-chan os.Signal) {
	r.mu.Lock()
	for pid := range r.children {
		_ = syscall.Kill(-pid, syscall.SIGKILL)
	}
	r.mu.Unlock()
	limit := time.After(5 * time.Second)
	for {
		r.reap()
		if r.running() == 0 {
			return
		}
		select {
		case <-ended:
		case <-limit:
			return
		}
	}
}

func (r *Reaper) running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.children)
}

// signal sends sig to a process, or to its whole group, unless it was reaped.
func (r *Reaper) signal(p *Process, sig syscall.Signal, group bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children[p.pid] != p {
		return nil
	}
	pid := p.pid
	if group {
		pid = -pid
	}
	if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("sending %v to process %d: %w", sig, p.pid, err)
	}
	return nil
}
