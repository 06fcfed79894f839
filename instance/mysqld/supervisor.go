package mysqld

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"cnmsql.co/operator/instance/protocol"
)

// exitRestart is the exit code by which mysqld asks to be started again: after RESTART and after CLONE.
const exitRestart = 16

// SupervisorOptions are what a Supervisor needs.
type SupervisorOptions struct {
	Reaper *Reaper
	// Prepare is called before each start, to write my.cnf and name the command. The environment gets
	// MYSQLD_PARENT_PID, without which the server would refuse RESTART. An error counts as a failed start.
	Prepare func(context.Context) (Command, error)
	// Ready returns when the server that was just started accepts connections. It is called once per
	// start; its context ends with that server. Its error is logged, the server goes on as starting.
	Ready func(context.Context) error
	// BeforeStop is called before the SIGTERM of Stop when the server answers, to make the stop a quick one;
	// nil means nothing. Its context ends with that of Stop, after 5 s at the latest.
	BeforeStop func(context.Context)
	Log        logr.Logger
	// FirstBackoff is the pause after an unintended end, doubled with each up to MaxBackoff, and back to
	// the first after the server ran for SteadyAfter. Defaults: 250 ms, 10 s, 60 s.
	FirstBackoff, MaxBackoff, SteadyAfter time.Duration
}

// State is what is known of the server.
type State struct {
	Server protocol.ServerState
	// Since is when Server became so.
	Since time.Time
	// Pid is of the running process; 0 exactly when there is none.
	Pid int
	// Restarts counts the unintended ends, InARow those since the server last ran steadily.
	Restarts, InARow int
	// Held tells that no server is started until Release; see Hold.
	Held bool
	// LastExit is how the server last ended, or why it could not be started.
	LastExit string
	// LastError is the last error line in the log of the present server, else of the last one that had any.
	LastError string
}

// Supervisor keeps one server running.
type Supervisor struct {
	o   SupervisorOptions
	log *ServerLog

	mu      sync.Mutex
	state   State
	changed chan struct{}
	process *Process
	keeper  *keeper
	// hold is closed while the server is held, holdWithin is how long it may take to end then.
	hold       chan struct{}
	holdWithin time.Duration
}

// keeper is one span from Start to Stop.
type keeper struct {
	cancel context.CancelFunc
	done   chan struct{}
	// stopBy is set by Stop before cancel: until when the server may take to end.
	stopBy context.Context //nolint:containedctx // handed from Stop to the goroutine that ends the server
}

// NewSupervisor starts nothing yet.
func NewSupervisor(o SupervisorOptions) *Supervisor {
	setDefault(&o.FirstBackoff, 250*time.Millisecond)
	setDefault(&o.MaxBackoff, 10*time.Second)
	setDefault(&o.SteadyAfter, 60*time.Second)
	return &Supervisor{
		o:       o,
		log:     NewServerLog(o.Log),
		state:   State{Server: protocol.ServerDown, Since: time.Now()},
		changed: make(chan struct{}),
		hold:    make(chan struct{}),
	}
}

func setDefault(d *time.Duration, to time.Duration) {
	if *d == 0 {
		*d = to
	}
}

// Start begins to keep a server running and returns at once. It does nothing when that is so already.
func (s *Supervisor) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.keeper != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	k := &keeper{cancel: cancel, done: make(chan struct{})}
	s.keeper = k
	go s.keep(ctx, k)
}

// Stop ends the server and the keeping: SIGTERM, and SIGKILL when ctx ends first. It returns when no
// process is left, or with an error when the kernel does not end it. It does nothing when nothing was
// started.
func (s *Supervisor) Stop(ctx context.Context) error {
	s.mu.Lock()
	k := s.keeper
	if k == nil {
		s.mu.Unlock()
		return nil
	}
	if k.stopBy == nil {
		k.stopBy = ctx
	}
	s.mu.Unlock()
	k.cancel()
	select {
	case <-k.done:
		return nil
	case <-ctx.Done():
	}
	s.Kill()
	select {
	case <-k.done:
		return nil
	case <-time.After(killTime):
		return errors.New("stopping the server: it is still there after SIGKILL")
	}
}

// Hold ends the server, if one runs, and keeps any from being started until Release. It sends SIGTERM, and SIGKILL when
// that takes longer than within; with 0 SIGKILL at once. It returns at once. A second Hold changes nothing, but for one
// with 0.
func (s *Supervisor) Hold(within time.Duration) {
	if within == 0 && s.State().Held {
		s.Kill()
		return
	}
	s.update(func(st *State) {
		if st.Held {
			return
		}
		st.Held, s.holdWithin = true, within
		close(s.hold)
	})
}

// Release ends a Hold: what Start began goes on. A server that is still ending is started again afterwards.
func (s *Supervisor) Release() {
	s.update(func(st *State) {
		if !st.Held {
			return
		}
		st.Held, s.hold = false, make(chan struct{})
	})
}

// held is a channel that is closed while the server is held.
func (s *Supervisor) held() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hold
}

// Kill ends the present server at once, without a shutdown. Unless it is being stopped, it is started
// again like after any other end. It does nothing when no server runs.
func (s *Supervisor) Kill() {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p == nil {
		return
	}
	if err := p.Kill(); err != nil {
		s.o.Log.Error(err, "killing the server")
	}
}

// State is the present state.
func (s *Supervisor) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stateLocked()
}

func (s *Supervisor) stateLocked() State {
	st := s.state
	st.LastError = s.log.LastError()
	return st
}

// Watch is the present state and a channel that is closed when it changes.
func (s *Supervisor) Watch() (State, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stateLocked(), s.changed
}

// Await waits until the state fulfils want and returns it, or the last one with ctx's error.
func (s *Supervisor) Await(ctx context.Context, want func(State) bool) (State, error) {
	for {
		st, changed := s.Watch()
		if want(st) {
			return st, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return st, ctx.Err()
		}
	}
}

// update changes the state and tells those who watch.
func (s *Supervisor) update(change func(*State)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.state.Server
	change(&s.state)
	if s.state.Server != before {
		s.state.Since = time.Now()
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// managed adds to the environment what mysqld looks for to believe that somebody will start it again: its
// parent's process id.
func managed(c Command) Command {
	const name = "MYSQLD_PARENT_PID="
	env := c.Env
	if env == nil {
		env = os.Environ()
	}
	c.Env = make([]string, 0, len(env)+1)
	for _, e := range env {
		if !strings.HasPrefix(e, name) {
			c.Env = append(c.Env, e)
		}
	}
	c.Env = append(c.Env, name+strconv.Itoa(os.Getpid()))
	return c
}
