package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
)

// progressPoll is how often the progress of a clone is read while it runs.
const progressPoll = 500 * time.Millisecond

// stallAfter is how long no byte of a clone may come before it is said to stand still.
const stallAfter = 5 * time.Second

// maxFailedStarts is how often in a row a new server may end before its data are thrown away.
const maxFailedStarts = 3

// errStandstill tells that a clone was ended because it did not go on.
var errStandstill = errors.New("it has stood still")

// startServer starts the server and waits until it answers.
func (m *maker) startServer(ctx context.Context) error {
	before := m.p.Supervisor.State().Restarts
	m.p.Supervisor.Start()
	return m.await(ctx, before, func(mysqld.State) bool { return true })
}

// await waits for a running server that want accepts. It gives up when the server keeps ending, or takes too long.
func (m *maker) await(ctx context.Context, restarts int, want func(mysqld.State) bool) error {
	ctx, cancel := m.limited(ctx)
	defer cancel()
	failed := func(st mysqld.State) bool { return st.Restarts >= restarts+maxFailedStarts }
	st, err := m.p.Supervisor.Await(ctx, func(st mysqld.State) bool {
		return failed(st) || (st.Server == protocol.ServerRunning && want(st))
	})
	if err != nil {
		return fmt.Errorf("waiting for the server to start: %w", context.Cause(ctx))
	}
	if failed(st) {
		return fmt.Errorf("the new server does not start: %s: %s %s", st.LastExit, orUnknown(st.LastError), m.remedy())
	}
	return nil
}

// remedy is what helps against most ends of a new server.
func (m *maker) remedy() string {
	return fmt.Sprintf("(correct spec.mysql.parameters or spec.mysql.additionalConfigFiles; kubectl logs %s -c mysql tells more)", m.p.Instance)
}

// join makes this server a clone of the primary. A try that failed before it dropped anything is repeated on
// the same server; another error means that the data are worthless.
func (m *maker) join(ctx context.Context) error {
	if err := m.startServer(ctx); err != nil {
		return err
	}
	for {
		m.tell(protocol.StepWaiting, 0)
		donor, err := m.p.Donor(ctx)
		if err != nil {
			return fmt.Errorf("finding the primary to clone: %w", err)
		}
		m.tell(protocol.StepCloning, 0)
		m.p.Log.Info("cloning the primary", "host", donor.Host)
		before := m.p.Supervisor.State()
		err = m.clone(ctx, donor)
		if err == nil {
			return m.finishClone(ctx, before)
		}
		if errors.Is(err, errStandstill) {
			// The server may hang in it, and takes no other as long as it does.
			return err
		}
		if dropped, readErr := m.p.Server.CloneDropped(ctx); dropped || readErr != nil {
			return err
		}
		if err := m.failed(ctx, err); err != nil {
			return err
		}
	}
}

// clone copies the donor's data, telling the progress. One that stands still is ended.
func (m *maker) clone(ctx context.Context, donor mysql.Source) error {
	cloning, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.watchClone(cloning, end)
	}()
	err := m.p.Server.Clone(cloning, donor)
	why := context.Cause(cloning)
	end(nil)
	<-done
	if err != nil && why != nil {
		return fmt.Errorf("cloning from %s: %w", donor.Host, why)
	}
	return err
}

// watchClone tells the progress of a clone until ctx ends, and ends it when there is none.
func (m *maker) watchClone(ctx context.Context, end context.CancelCauseFunc) {
	var last mysql.CloneProgress
	since := time.Now()
	for sleep(ctx, progressPoll) == nil {
		now, running, err := m.p.Server.CloneProgress(ctx)
		if err == nil && running && now != last {
			last, since = now, time.Now()
		}
		still := time.Since(since)
		m.progress(protocol.Provision{Step: protocol.StepCloning, Percent: last.Percent, Stalled: still >= stallAfter})
		if still >= m.p.Standstill {
			end(fmt.Errorf("%w at %d percent for %s", errStandstill, last.Percent, m.p.Standstill))
			return
		}
	}
}

// finishClone waits for the server that starts on the cloned data and sees that the clone is complete.
func (m *maker) finishClone(ctx context.Context, before mysqld.State) error {
	m.tell(protocol.StepRestarting, 100)
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
