package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/role"
)

const (
	stepTimeout   = 15 * time.Second
	demoteTimeout = 30 * time.Second
	// stopPrepareTimeout is for ending the connections to a server that is about to be stopped.
	stopPrepareTimeout = 5 * time.Second
	openTimeout        = 2 * time.Second
	// stepDownDrain is how long client transactions may finish by themselves in a planned step-down.
	stepDownDrain = time.Second
)

// errStale tells that what was decided from is not so any more. Nothing was done that a later decision would not see.
var errStale = errors.New("the state has changed meanwhile")

// ErrRefused tells that this instance does not do what it was asked for; the message says why.
var ErrRefused = errors.New("refused")

// carryOut does one step, within bounds, and says so in one line.
func (l *Loop) carryOut(ctx context.Context, m *moment, d role.Decision) error {
	if err := l.step.enter(ctx); err != nil {
		return err
	}
	defer l.step.leave()
	l.waitKey = ""
	started := l.o.Clock.Now()
	if err := l.do(ctx, m, d); err != nil {
		l.peers = nil
		return err
	}
	l.o.Log.Info(d.Why, "step", string(d.Step.Kind), "took", (l.o.Clock.Now() - started).Round(time.Millisecond).String())
	l.remember(m, d)
	return nil
}

func (l *Loop) do(ctx context.Context, m *moment, d role.Decision) error {
	timeout := stepTimeout
	if d.Step.Kind == role.Demote {
		timeout = demoteTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	s := l.o.Server
	switch d.Step.Kind {
	case role.Demote:
		return l.demote(ctx)
	case role.AcquireLease:
		return l.o.Keeper.Acquire(ctx)
	case role.ReleaseLease:
		return l.o.Keeper.Release(ctx, d.Step.Executed, d.Step.Attempt)
	case role.StopReceiver:
		return s.StopReplicaIO(ctx)
	case role.StopReplica:
		return s.StopReplica(ctx)
	case role.StartReplica:
		return s.StartReplica(ctx)
	case role.StartApplier:
		return s.StartReplicaSQL(ctx)
	case role.ResetReplica:
		return s.ResetReplicaAll(ctx)
	case role.Follow:
		return l.follow(ctx, d)
	case role.SourceSemiSync:
		return s.SetSemiSync(ctx, m.facts.SemiSync, false, m.intent.AckCount)
	case role.Acknowledge:
		return s.SetSemiSync(ctx, m.facts.MySQL.SemiSync.SourceEnabled, true, 0)
	case role.ReplicaSemiSync:
		now := m.facts.MySQL.SemiSync
		return s.SetSemiSync(ctx, false, now.ReplicaEnabled || m.facts.SemiSync && !now.ReplicaMissing, 0)
	case role.Claim:
		return l.claim(ctx, m, d)
	case role.OpenWrites:
		return l.open(ctx)
	case role.RecordReassert:
		return l.o.Keeper.Record(ctx, api.AnnotationReasserted, time.Now().UTC().Format(time.RFC3339))
	case role.AdmitClients:
		return s.AdmitClients(ctx)
	case role.StopServer, role.KillServer, role.StartServer:
		l.keepStopped(ctx, m, d.Step.Kind)
		return nil
	case role.Rest, role.Wait, role.AskPeers, role.Confirm:
	}
	return fmt.Errorf("there is no way to carry out %q", d.Step.Kind)
}

// demote makes the server read-only. One that stays writable was closed by nobody.
func (l *Loop) demote(ctx context.Context) error {
	l.letGo.Store(0)
	opened := l.closing.opened
	l.closing.opened = 0
	err := l.o.Server.Demote(ctx, mysql.DemoteOptions{DrainAfter: stepDownDrain})
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTimeout)
	defer cancel()
	if m, readErr := l.o.Server.Read(ctx); readErr == nil && m.Writable() {
		l.closing.opened = opened
	}
	return err
}

// keepStopped begins to end the server, cleanly or not, and keeps it stopped; or it ends that.
func (l *Loop) keepStopped(ctx context.Context, m *moment, how role.StepKind) {
	switch {
	case how == role.StartServer:
		l.o.Instance.Release()
		return
	case how == role.KillServer:
		l.o.Instance.Hold(0)
		return
	case m.facts.ServerRunning:
		ctx, cancel := context.WithTimeout(ctx, stopPrepareTimeout)
		defer cancel()
		if err := l.o.Server.PrepareStop(ctx); err != nil {
			l.o.Log.Info("the stop may take longer: not all connections could be ended", "reason", err.Error())
		}
	}
	l.o.Instance.Hold(time.Duration(m.cluster.Spec.MaxStopDelay) * time.Second)
}

func (l *Loop) follow(ctx context.Context, d role.Decision) error {
	source, err := l.o.Source(d.Step.Source)
	if err != nil {
		return err
	}
	err = l.o.Server.Follow(ctx, source, *d.Step.Executed)
	if errors.Is(err, mysql.ErrReceivedMore) {
		return fmt.Errorf("%w: %w", errStale, err)
	}
	return err
}

// open opens the server for writes while the lease has time to spare: the deadline of the fence does not
// pass before the statement has ended.
func (l *Loop) open(ctx context.Context) error {
	left := l.o.Keeper.Remaining()
	if left <= openTimeout {
		return fmt.Errorf("%w: the primary lease is in force for %s only", errStale, left.Round(time.Millisecond))
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return l.o.Server.OpenWrites(ctx)
}

// remember keeps what the next decisions need to know of this one.
func (l *Loop) remember(m *moment, d role.Decision) {
	now := l.o.Clock.Now()
	l.rememberOpening(d.Step.Kind)
	switch d.Step.Kind {
	case role.StartReplica, role.Follow:
		if l.retryAt != 0 {
			l.retryAt = now + retryBroken
		}
	case role.ReleaseLease:
		if r := d.Refused(m.intent.Generation); r != nil {
			l.refusal, l.refusedAt = r, now
		}
	default:
	}
	if !d.Step.Kind.KeepsAnswers() {
		l.peers = nil
	}
}
