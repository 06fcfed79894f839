package agent

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

const (
	readTimeout = 5 * time.Second
	restPause   = 5 * time.Second
	// A wait is looked at again after the first pause, then after twice as long, up to the last; one that has
	// lasted long is at rest.
	firstWait = 50 * time.Millisecond
	lastWait  = time.Second
	longWait  = 30 * time.Second
	// closeWait is the pause while a promotion waits for this very server, and for how long.
	closeWait    = 20 * time.Millisecond
	closeFor     = 10 * time.Second
	maxSteps     = 32 // in one turn
	firstRepeat  = 100 * time.Millisecond
	lastRepeat   = 5 * time.Second
	answersLast  = 5 * time.Second
	refusalLasts = 10 * time.Second
	retryBroken  = 30 * time.Second
	// routesLag is how long clients may be led to a former primary after the Cluster names another: until the
	// labels, the endpoints and each node's kube-proxy, which by default programs once a second, have followed.
	routesLag = 3 * time.Second
)

// LoopOptions are what a Loop works with.
type LoopOptions struct {
	// Name is the instance's name.
	Name     string
	Instance *Instance
	Server   Server
	Watcher  *Watcher
	Keeper   *Keeper
	Peers    Asker
	API      API
	Clock    Clock
	Stopping *Stopping
	// Source is how to follow an instance.
	Source func(instance string) (mysql.Source, error)
	// Publish is told each decision with the facts it was made from, and when they were read.
	Publish func(m *protocol.MySQL, readAt time.Duration, d role.Decision)
	// NoRoom tells that the server's volume takes no more, so that a commit may keep it from closing; nil for never.
	NoRoom func() bool
	Log    logr.Logger
}

// Loop carries out the role of this instance, one step after the other.
type Loop struct {
	o    LoopOptions
	wake signal
	// step lets one step through at a time.
	step gate

	peers     *role.Peers
	asked     time.Duration
	refusal   *role.Refusal
	refusedAt time.Duration
	retryAt   time.Duration // of a broken channel; 0 when it is not broken
	primaryAt time.Duration // when this was last seen to be the primary
	wasOne    bool          // whether it ever was
	closing   closing
	silent    since // the server runs and answers nothing
	unclosed  since // a fenced server is not read-only
	handover  since // a fenced primary has given everything back but its server
	reasserts atomic.Int64
	letGo     atomic.Int64 // until when commits are to be let go that nobody can acknowledge
	waitKey   string       // what is waited for, without its figures
	waitSince time.Duration
	waitPause time.Duration
	repeat    time.Duration // pause after a step that failed
	failure   string        // the last one that was logged
	failureAt time.Duration
}

// NewLoop makes a Loop.
func NewLoop(o LoopOptions) *Loop { return &Loop{o: o, wake: newSignal(), step: newGate()} }

// Wake makes the loop look at once.
func (l *Loop) Wake() { l.wake.set() }

// Run goes on until ctx ends.
func (l *Loop) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		pause := l.turn(ctx)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-l.wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// moment is what one decision is made from.
type moment struct {
	cluster *api.Cluster
	facts   role.Facts
	intent  role.Intent
	readAt  time.Duration
}

// turn carries out steps until there is nothing to do now, and returns when to look again.
func (l *Loop) turn(ctx context.Context) time.Duration {
	for range maxSteps {
		m := l.observe(ctx)
		d, err := l.decide(ctx, &m)
		if ctx.Err() != nil {
			return 0
		}
		if err == nil {
			l.o.Publish(m.facts.MySQL, m.readAt, d)
			if d.Step.Kind == role.Rest || d.Step.Kind == role.Wait {
				return l.idle(&m, d)
			}
			err = l.carryOut(ctx, &m, d)
		}
		if err != nil && ctx.Err() == nil {
			return l.failed(d, err)
		}
		l.repeat, l.failure = 0, ""
	}
	l.o.Log.Info("the role does not come to rest; pausing")
	return lastWait
}

// observe reads everything anew.
func (l *Loop) observe(ctx context.Context) moment {
	m := moment{readAt: l.o.Clock.Now(), cluster: l.o.Watcher.Cluster()}
	m.intent = intentOf(m.cluster, l.o.Name)
	// Who makes the data looks at the fence himself.
	complete := l.o.Instance.Complete()
	m.intent.Fenced = m.intent.Fenced && complete
	f := role.Facts{Instance: l.o.Name, SemiSync: m.cluster != nil && m.cluster.SemiSyncEnabled()}
	f.ShuttingDown, f.StepDownDue = l.o.Stopping.Facts()
	// In this order: a server that went between the two looks is seen as neither running nor gone.
	f.ServerGone = l.o.Instance.Gone()
	st := l.o.Instance.State()
	f.ServerHeld, f.ServerStarting = st.Held && complete, st.Server == protocol.ServerStarting
	runs := !f.ServerGone && l.o.Instance.Running()
	if runs {
		readCtx, cancel := context.WithTimeout(ctx, readTimeout)
		facts, err := l.o.Server.Read(readCtx)
		cancel()
		if err == nil {
			f.ServerRunning, f.MySQL = true, facts
		} else {
			l.o.Log.V(1).Info("cannot read the server", "error", err.Error())
		}
	}
	f.Closed = l.closedByOther(m.cluster, f.MySQL)
	f.Lease = l.o.Keeper.Facts()
	now := l.o.Clock.Now()
	f.ServerStuck = l.silent.lasts(runs && !f.ServerRunning, now) >= hangBound ||
		l.unclosed.lasts(role.Unclosed(f, m.intent), now) >= closeBound(l.o.NoRoom)
	f.HandoverOverdue = l.handover.lasts(role.HandingOver(f, m.intent), now) >= handoffBound
	f.LetGo = int64(now) < l.letGo.Load()
	f.RetryDue = l.retryDue(f.MySQL, now)
	if m.intent.CurrentPrimary == l.o.Name {
		l.wasOne, l.primaryAt = true, now
	}
	f.LatelyPrimary = l.wasOne && now-l.primaryAt < routesLag
	if l.refusal != nil && l.refusal.Attempt == "" && now-l.refusedAt > refusalLasts {
		l.refusal = nil
	}
	f.Refusal = l.refusal
	f.Peers = l.answers(now)
	m.facts = f
	return m
}

// since is from when on something is so; nil while it is not.
type since struct{ at *time.Duration }

// lasts takes whether it is so now, and returns for how long it has been.
func (s *since) lasts(so bool, now time.Duration) time.Duration {
	if !so {
		s.at = nil
		return 0
	}
	if s.at == nil {
		s.at = &now
	}
	return now - *s.at
}

// retryDue starts the timer of a channel that has broken, and tells whether it has passed.
func (l *Loop) retryDue(m *protocol.MySQL, now time.Duration) bool {
	switch {
	case m == nil || !m.Replication.Broken():
		l.retryAt = 0
		return false
	case l.retryAt == 0:
		l.retryAt = now + retryBroken
	}
	return now >= l.retryAt
}

// answers is what the peers last said, unless that is too old. Whether it was said under the lease is
// judged by the acquisition that holds now.
func (l *Loop) answers(now time.Duration) *role.Peers {
	if l.peers == nil || now-l.asked > answersLast {
		l.peers = nil
		return nil
	}
	acquired, holding := l.o.Keeper.AcquiredAt()
	return &role.Peers{SinceLease: holding && l.asked >= acquired, Answers: l.peers.Answers, Silent: l.peers.Silent}
}

// decide asks for the step. Peers are asked, and the API server is, without reading the own facts again:
// what the others say then is later than what this instance compares it with.
func (l *Loop) decide(ctx context.Context, m *moment) (role.Decision, error) {
	for range 4 {
		d := role.Decide(m.facts, m.intent)
		switch d.Step.Kind {
		case role.AskPeers:
			l.asked = l.o.Clock.Now()
			names := whom(m.cluster, m.intent, l.o.Name)
			reports := l.o.Peers.Ask(ctx, names)
			l.peers = &role.Peers{Answers: peersOf(reports, m.cluster.Status.DivergedInstances)}
			l.peers.Silent = silent(names, l.peers.Answers)
			m.facts.Peers = l.answers(l.o.Clock.Now())
			m.facts.Lease = l.o.Keeper.Facts()
			l.o.Log.V(1).Info("asked the peers", "why", d.Why, "answers", len(l.peers.Answers))
		case role.Confirm:
			cluster, err := l.o.Watcher.Live(ctx)
			if err != nil {
				return d, err
			}
			m.cluster, m.intent = cluster, intentOf(cluster, l.o.Name)
			m.intent.Live = true
			m.facts.Lease = l.o.Keeper.Facts()
			m.facts.ShuttingDown, m.facts.StepDownDue = l.o.Stopping.Facts()
		default:
			return d, nil
		}
	}
	return role.Decision{}, errors.New("the decision asks the same thing again and again")
}

// idle says once what is waited for, and returns when to look again. After a wait the peers are asked anew.
func (l *Loop) idle(m *moment, d role.Decision) time.Duration {
	now := l.o.Clock.Now()
	if d.Step.Kind == role.Rest {
		if l.waitKey != "" {
			l.o.Log.Info(d.Why)
		}
		l.waitKey, l.peers = "", nil
		return restPause
	}
	l.peers = nil
	if key := withoutDigits(d.Why); key != l.waitKey {
		l.o.Log.Info("waiting", "for", d.Why)
		if d.ResumeRefused != "" && m.intent.PromotionUnreadable {
			l.o.Log.Info(api.LogReassertRefused, "site", l.o.Name)
		}
		l.waitKey, l.waitSince, l.waitPause = key, now, firstWait
	}
	pause := l.waitPause
	l.waitPause = min(2*l.waitPause, lastWait)
	waited := now - l.waitSince
	switch t := m.intent.Transition; {
	case t != nil && t.To == l.o.Name && m.facts.Lease.Mine && waited < closeFor:
		return closeWait
	case waited > longWait:
		pause = restPause
	}
	if left := l.o.Keeper.UntilAcquirable(); left > 0 {
		pause = min(pause, left)
	}
	return pause
}

// failed says that a step failed, and returns when to try again.
func (l *Loop) failed(d role.Decision, err error) time.Duration {
	l.repeat = min(max(2*l.repeat, firstRepeat), lastRepeat)
	if errors.Is(err, errStale) {
		l.repeat = 0
		l.o.Log.Info("deciding again", "step", string(d.Step.Kind), "reason", err.Error())
		return time.Millisecond
	}
	// One that goes on is said once a minute.
	now, failure := l.o.Clock.Now(), string(d.Step.Kind)+": "+err.Error()
	if failure != l.failure || now-l.failureAt >= time.Minute {
		l.o.Log.Error(err, "step failed", "step", string(d.Step.Kind), "why", d.Why)
		l.failure, l.failureAt = failure, now
	}
	return l.repeat
}

// withoutDigits is a sentence without its figures.
func withoutDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, s)
}
