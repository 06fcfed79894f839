package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
)

// progressPoll is how often the progress of a clone is read while it runs.
const progressPoll = 500 * time.Millisecond

// maxFailedStarts is how often in a row a new server may end before its data are thrown away.
const maxFailedStarts = 3

// startServer starts the server and waits until it answers.
func (m *maker) startServer(ctx context.Context) error {
	before := m.p.Supervisor.State().Restarts
	m.p.Supervisor.Start()
	return m.await(ctx, before, func(mysqld.State) bool { return true })
}

// await waits for a running server that want accepts. It gives up when the server keeps ending.
func (m *maker) await(ctx context.Context, restarts int, want func(mysqld.State) bool) error {
	failed := func(st mysqld.State) bool { return st.Restarts >= restarts+maxFailedStarts }
	st, err := m.p.Supervisor.Await(ctx, func(st mysqld.State) bool {
		return failed(st) || (st.Server == protocol.ServerRunning && want(st))
	})
	if err != nil {
		return fmt.Errorf("waiting for the server to start: %w", err)
	}
	if failed(st) {
		return fmt.Errorf("the new server does not start: %s: %s", st.LastExit, orUnknown(st.LastError))
	}
	return nil
}

// join makes this server a clone of the primary. A try that failed before it dropped anything is repeated on
// the same server; another error means that the data are worthless.
func (m *maker) join(ctx context.Context) error {
	if err := m.startServer(ctx); err != nil {
		return err
	}
	for {
		m.tell("waiting", 0)
		donor, err := m.p.Donor(ctx)
		if err != nil {
			return fmt.Errorf("finding the primary to clone: %w", err)
		}
		m.tell("cloning", 0)
		m.p.Log.Info("cloning the primary", "host", donor.Host)
		before := m.p.Supervisor.State()
		stop := m.watchClone(ctx)
		err = m.p.Server.Clone(ctx, donor)
		stop()
		if err == nil {
			return m.finishClone(ctx, before)
		}
		if dropped, readErr := m.p.Server.CloneDropped(ctx); dropped || readErr != nil {
			return err
		}
		if err := m.failed(ctx, err); err != nil {
			return err
		}
	}
}

// watchClone tells the progress of a clone until the function that it returns is called.
func (m *maker) watchClone(ctx context.Context) func() {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for sleep(ctx, progressPoll) == nil {
			if percent, running, err := m.p.Server.CloneProgress(ctx); err == nil && running {
				m.tell("cloning", percent)
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// finishClone waits for the server that starts on the cloned data and sees that the clone is complete.
func (m *maker) finishClone(ctx context.Context, before mysqld.State) error {
	m.tell("restarting", 100)
	another := func(st mysqld.State) bool { return st.Pid != before.Pid }
	if err := m.await(ctx, before.Restarts, another); err != nil {
		return err
	}
	c, any, err := m.p.Server.CloneStatus(ctx)
	switch {
	case err != nil:
		return err
	case !any:
		return errors.New("the server knows nothing of the clone")
	case !c.Completed:
		return fmt.Errorf("the clone is %s: %d %s", c.State, c.Errno, c.Message)
	}
	return nil
}
