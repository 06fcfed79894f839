package provision

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cnmsql.co/operator/instance/protocol"
)

// lookAgain is how often a start that is kept back looks whether it still is.
const lookAgain = time.Second

// stopTime bounds the end of a server whose data are thrown away.
const stopTime = 10 * time.Second

// Ensure makes sure that the volume holds this instance's data, and starts the Supervisor on them. New data
// are served already when it returns; on data that were complete the server may still be recovering. It
// tries again, with growing pauses, until ctx ends or it has to refuse with a Refusal; then no server runs
// and the volume is not locked.
//
// The volume stays locked until Release or the end of the process.
func Ensure(ctx context.Context, p Plan) (*Volume, error) {
	if p.FirstBackoff == 0 {
		p.FirstBackoff = time.Second
	}
	if p.MaxBackoff == 0 {
		p.MaxBackoff = 30 * time.Second
	}
	if p.Limit == nil {
		p.Limit = func() time.Duration { return time.Hour }
	}
	if p.Fenced == nil {
		p.Fenced = func(context.Context) bool { return false }
	}
	if p.Standstill == 0 {
		p.Standstill = time.Hour
	}
	m := &maker{p: p, backoff: p.FirstBackoff}
	v, err := lockVolume(ctx, p.Layout.State, func() {
		m.lastError = "another manager holds the volume"
		m.tell(protocol.StepWaiting, 0)
		p.Log.Info("waiting for the volume, which another manager holds")
	})
	if err != nil {
		return nil, err
	}
	m.lastError = ""
	if err := m.run(ctx); err != nil {
		v.Release()
		return nil, err
	}
	p.Progress(nil)
	return v, nil
}

// maker makes the data of one volume.
type maker struct {
	p         Plan
	backoff   time.Duration
	step      string
	percent   int32
	attempts  int32
	lastError string
}

func (m *maker) run(ctx context.Context) error {
	for {
		err := m.once(ctx)
		if err == nil {
			return nil
		}
		m.stopServer()
		if refusal, ok := errors.AsType[*Refusal](err); ok {
			m.lastError = refusal.Message
			m.tell(protocol.StepWaiting, 0)
			return err
		}
		if err := m.failed(ctx, err); err != nil {
			return err
		}
	}
}

// failed notes a failed try and pauses. Its own error is the end of ctx.
func (m *maker) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("provisioning: %w", err)
	}
	m.attempts++
	m.lastError = err.Error()
	m.tell(m.step, m.percent)
	m.p.Log.Error(err, "provisioning", "attempt", m.attempts, "again in", m.backoff.String())
	if err := sleep(ctx, m.backoff); err != nil {
		return fmt.Errorf("provisioning: %w", err)
	}
	m.backoff = min(2*m.backoff, m.p.MaxBackoff)
	return nil
}

func (m *maker) once(ctx context.Context) error {
	s, err := ReadState(m.p.Layout.State)
	if err != nil {
		return err
	}
	found, err := m.p.Layout.found()
	if err != nil {
		return err
	}
	what, err := decide(s, m.p.ClusterUID, m.p.Instance, found)
	if err != nil {
		return err
	}
	if what == start {
		// The data are there, whatever else is waited for.
		m.p.Progress(nil)
		if m.p.Fenced(ctx) {
			m.p.Supervisor.Hold(0)
		}
		m.p.Supervisor.Start()
		return nil
	}
	if err := m.awaitUnfenced(ctx); err != nil {
		return err
	}
	return m.makeData(ctx)
}

// awaitUnfenced makes nothing while the instance is fenced.
func (m *maker) awaitUnfenced(ctx context.Context) error {
	for m.p.Fenced(ctx) {
		m.tell(protocol.StepFenced, 0)
		if err := sleep(ctx, lookAgain); err != nil {
			return fmt.Errorf("waiting for the end of the fence: %w", err)
		}
	}
	return nil
}

// makeData begins with the same empty server whatever the Cluster wants of it, so that this is done by the
// time the answer comes.
func (m *maker) makeData(ctx context.Context) error {
	m.tell(protocol.StepWaiting, 0)
	accounts, err := m.p.Accounts(ctx)
	if err != nil {
		return fmt.Errorf("reading the accounts: %w", err)
	}
	if err := m.emptyServer(ctx, accounts); err != nil {
		return err
	}
	m.tell(protocol.StepWaiting, 0)
	origin, err := m.p.Origin(ctx)
	if err != nil {
		return fmt.Errorf("finding out where the data come from: %w", err)
	}
	switch origin {
	case InitDB:
		err = m.initDB(ctx, accounts)
	case Join:
		if err = m.note(Joining); err == nil {
			err = m.join(ctx)
		}
	default:
		err = fmt.Errorf("unknown origin %q", origin)
	}
	if err != nil {
		return err
	}
	return m.note(Complete)
}

func (m *maker) emptyServer(ctx context.Context, accounts Accounts) error {
	started := time.Now()
	m.tell(protocol.StepInitialising, 0)
	if err := m.note(Initialising); err != nil {
		return err
	}
	if err := m.p.Layout.wipe(); err != nil {
		return err
	}
	c, err := m.p.Command(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := m.limited(ctx)
	defer cancel()
	if err := Initialise(ctx, m.p.Reaper, c, m.p.Layout.Data, accounts, m.p.Log); err != nil {
		return err
	}
	m.p.Log.Info("initialised an empty server", "took", time.Since(started).Round(time.Millisecond).String())
	return nil
}

// limited bounds what a server may hang in: no probe ends the container while data are being made.
func (m *maker) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := m.p.Limit()
	return context.WithTimeoutCause(ctx, limit, fmt.Errorf("it has taken longer than %s (spec.maxStartDelay)", limit))
}

func (m *maker) initDB(ctx context.Context, accounts Accounts) error {
	m.tell(protocol.StepInitialising, 0)
	database, err := m.p.Database(ctx)
	if err != nil {
		return fmt.Errorf("reading what the database contains: %w", err)
	}
	if err := m.startServer(ctx); err != nil {
		return err
	}
	return database.fill(ctx, m.p.Server, accounts.Root)
}

func (m *maker) note(s Stage) error {
	return writeState(m.p.Layout.State, State{ClusterUID: m.p.ClusterUID, Instance: m.p.Instance, Stage: s, Since: time.Now().UTC()})
}

func (m *maker) stopServer() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	if err := m.p.Supervisor.Stop(ctx); err != nil {
		m.p.Log.Error(err, "stopping a server whose data are thrown away")
	}
}

func (m *maker) tell(step string, percent int32) {
	m.progress(protocol.Provision{Step: step, Percent: percent})
}

// progress tells where it is, with what failed before.
func (m *maker) progress(now protocol.Provision) {
	m.step, m.percent = now.Step, now.Percent
	now.Attempts, now.LastError = m.attempts, m.lastError
	m.p.Progress(&now)
}
