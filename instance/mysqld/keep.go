package mysqld

import (
	"context"
	"time"

	"cnmsql.co/operator/instance/protocol"
)

// beforeStopTime bounds BeforeStop.
const beforeStopTime = 5 * time.Second

// keep runs one server after the other until it is told to stop.
func (s *Supervisor) keep(ctx context.Context, k *keeper) {
	defer close(k.done)
	pause := s.o.FirstBackoff
	for s.mayRun(ctx) {
		ran, again := s.runOnce(ctx, k)
		if ctx.Err() != nil {
			break
		}
		if ran >= s.o.SteadyAfter {
			pause = s.o.FirstBackoff
		}
		if again {
			continue
		}
		select {
		case <-time.After(pause):
		case <-s.held():
		case <-ctx.Done():
		}
		pause = min(2*pause, s.o.MaxBackoff)
	}
	s.update(func(st *State) {
		s.keeper = nil
		st.Server = protocol.ServerDown
	})
}

// mayRun waits until no Hold keeps a server from being started. It is false when ctx ends first.
func (s *Supervisor) mayRun(ctx context.Context) bool {
	for ctx.Err() == nil {
		st, changed := s.Watch()
		switch {
		case !st.Held:
			return true
		case st.Server != protocol.ServerFenced:
			s.update(func(st *State) { st.Server = protocol.ServerFenced })
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
	return false
}

// runOnce runs one server to its end. It returns how long the server was up and whether it asked to be
// started again at once.
func (s *Supervisor) runOnce(ctx context.Context, k *keeper) (ran time.Duration, again bool) {
	s.update(func(st *State) { st.Server = protocol.ServerStarting })
	p, err := s.startProcess(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return 0, false
		}
		s.o.Log.Error(err, "starting the server")
		s.ended("not started: "+err.Error(), 0, true)
		return 0, false
	}
	started := time.Now()
	s.o.Log.Info("started the server", "pid", p.Pid())
	answered, endReady := s.awaitReady(p)

	held := s.held()
	select {
	case <-p.Gone():
	case <-ctx.Done():
		s.stopProcess(k.stopBy, p)
	case <-held:
		by, cancel := context.WithTimeout(context.Background(), s.endWithin())
		s.stopProcess(by, p)
		cancel()
	}
	<-p.Gone()
	ran = time.Since(started)
	exit := p.exit
	endReady()
	again = exit.Code == exitRestart && <-answered
	intended := again || ctx.Err() != nil || isClosed(held)
	s.ended(exit.String(), ran, !intended)
	p.output.drain()
	s.o.Log.Info("the server ended", "exit", exit.String(), "after", ran.Round(time.Millisecond).String(), "intended", intended)
	return ran, again
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// endWithin is how long a server that is held may take to end.
func (s *Supervisor) endWithin() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holdWithin
}

func (s *Supervisor) startProcess(ctx context.Context) (*Process, error) {
	c, err := s.o.Prepare(ctx)
	if err != nil {
		return nil, err
	}
	c = managed(c)
	c.Output = s.log.Take
	p, err := s.o.Reaper.Start(c)
	if err != nil {
		return nil, err
	}
	s.update(func(st *State) {
		s.process = p
		st.Pid = p.Pid()
	})
	return p, nil
}

// awaitReady makes the state running once the server answers. The channel yields whether it ever did.
func (s *Supervisor) awaitReady(p *Process) (<-chan bool, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	answered := make(chan bool, 1)
	go func() {
		select {
		case <-p.Gone():
			cancel()
		case <-ctx.Done():
		}
	}()
	go func() {
		err := s.o.Ready(ctx)
		if err != nil && ctx.Err() == nil {
			s.o.Log.Error(err, "waiting for the server to accept connections")
		}
		if err == nil {
			s.update(func(st *State) {
				if st.Server == protocol.ServerStarting && st.Pid == p.Pid() {
					st.Server = protocol.ServerRunning
				}
			})
		}
		answered <- err == nil
	}()
	return answered, cancel
}

func (s *Supervisor) stopProcess(by context.Context, p *Process) {
	answers := false
	s.update(func(st *State) {
		answers = st.Server == protocol.ServerRunning
		st.Server = protocol.ServerStopping
	})
	if answers && s.o.BeforeStop != nil {
		ctx, cancel := context.WithTimeout(by, beforeStopTime)
		s.o.BeforeStop(ctx)
		cancel()
	}
	if _, err := p.Stop(by); err != nil {
		s.o.Log.Error(err, "stopping the server")
	}
}

// ended tells of an end at once; the last lines of the log may still be on their way.
func (s *Supervisor) ended(how string, ran time.Duration, unintended bool) {
	s.update(func(st *State) {
		s.process = nil
		st.Pid = 0
		st.LastExit = how
		st.Server = protocol.ServerDown
		if st.Held {
			st.Server = protocol.ServerFenced
		}
		if ran >= s.o.SteadyAfter {
			st.InARow = 0
		}
		if unintended {
			st.Restarts++
			st.InARow++
		}
	})
}
