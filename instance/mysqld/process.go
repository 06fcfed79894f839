package mysqld

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// killTime is how long a killed process may take to be gone.
const killTime = 10 * time.Second

// Command is what to run.
type Command struct {
	// Args is the program and its arguments. A program without a slash is looked up in PATH.
	Args []string
	// Env is the whole environment; nil means this process's own.
	Env []string
	// Dir is the working directory; empty means this process's own.
	Dir string
	// Files are open in the process as descriptors 3, 4, …. They stay open here as well.
	Files []*os.File
	// Output takes each line of standard output and standard error, without its end, at most 64 KiB of it.
	// Nil discards them.
	Output func(line string)
}

// Exit is how a process ended.
type Exit struct {
	// Code is the exit code; -1 when a signal ended it.
	Code int
	// Signal is what ended it, 0 when it exited by itself.
	Signal syscall.Signal
	// At is when that was noticed.
	At time.Time
}

// String says it in words: "exit code 1", "signal 9 (killed)".
func (e Exit) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("signal %d (%s)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

func exitOf(status syscall.WaitStatus) Exit {
	if status.Signaled() {
		return Exit{Code: -1, Signal: status.Signal(), At: time.Now()}
	}
	return Exit{Code: status.ExitStatus(), At: time.Now()}
}

// Process is one started process.
type Process struct {
	reaper *Reaper
	pid    int
	once   sync.Once
	exit   Exit
	gone   chan struct{}
	output *outputReader
}

// Start runs a command in a process group of its own.
func (r *Reaper) Start(c Command) (*Process, error) {
	argv, attr, err := c.prepare()
	if err != nil {
		return nil, err
	}
	output, writer, err := openOutput(c.Output)
	if err != nil {
		return nil, err
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", os.DevNull, err)
	}
	defer null.Close()
	defer writer.Close()
	attr.Files = []uintptr{null.Fd(), writer.Fd(), writer.Fd()}
	for _, f := range c.Files {
		attr.Files = append(attr.Files, f.Fd())
	}
	q := startRequest{argv: argv, attr: attr, out: make(chan startResult, 1)}
	q.made = func(pid int) *Process {
		return &Process{reaper: r, pid: pid, gone: make(chan struct{}), output: output}
	}
	select {
	case r.starts <- q:
	case <-r.done:
		output.close()
		return nil, ErrReaperClosed
	}
	result := <-q.out
	if result.err != nil {
		output.close()
		return nil, result.err
	}
	output.start()
	return result.process, nil
}

func (c Command) prepare() ([]string, *syscall.ProcAttr, error) {
	if len(c.Args) == 0 {
		return nil, nil, errors.New("starting a process: no program given")
	}
	argv := append([]string(nil), c.Args...)
	if !strings.Contains(argv[0], "/") {
		path, err := exec.LookPath(argv[0])
		if err != nil {
			return nil, nil, fmt.Errorf("starting %s: %w", argv[0], err)
		}
		argv[0] = path
	}
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	return argv, &syscall.ProcAttr{
		Dir: c.Dir,
		Env: env,
		Sys: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}, nil
}

// Pid is the process id.
func (p *Process) Pid() int { return p.pid }

// Gone is closed when the process was reaped.
func (p *Process) Gone() <-chan struct{} { return p.gone }

// Wait waits for the end of the process and of its output.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.gone:
	case <-ctx.Done():
		return Exit{}, fmt.Errorf("waiting for the end of process %d: %w", p.pid, ctx.Err())
	}
	p.output.drain()
	return p.exit, nil
}

// Signal sends a signal to the process alone. It is no error when the process has ended.
func (p *Process) Signal(sig syscall.Signal) error { return p.reaper.signal(p, sig, false) }

// Kill ends the process and what it started, at once. It is no error when it has ended.
func (p *Process) Kill() error { return p.reaper.signal(p, syscall.SIGKILL, true) }

// Stop asks the process to end, waits for it until ctx ends, and then kills it: at once when ctx has ended already. It
// returns when the process is gone, with an error only when it could not be brought to an end.
func (p *Process) Stop(ctx context.Context) (Exit, error) {
	if ctx.Err() == nil {
		if err := p.Signal(syscall.SIGTERM); err != nil {
			return Exit{}, err
		}
		if exit, err := p.Wait(ctx); err == nil {
			return exit, nil
		}
	}
	if err := p.Kill(); err != nil {
		return Exit{}, err
	}
	// A killed process is gone in moments unless it hangs in the kernel.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), killTime)
	defer cancel()
	return p.Wait(ctx)
}

func (p *Process) finish(e Exit) {
	p.once.Do(func() {
		p.exit = e
		close(p.gone)
	})
}
