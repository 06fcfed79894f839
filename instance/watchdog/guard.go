package watchdog

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"

	"cnmsql.co/operator/instance/mysqld"
)

const (
	// beatCheck is how often the manager looks whether the watchdog lives, deafAfter how many looks in a row
	// without a sign of life make it count as standing still. Looks are counted and not time: a manager that
	// stood still itself has seen nothing.
	beatCheck = 250 * time.Millisecond
	deafAfter = 8
	// restartPause is between the end of a watchdog and the start of the next.
	restartPause = 100 * time.Millisecond
	// trustAfter is how many looks in a row a watchdog may be missing before the server must not be writable.
	trustAfter = 16
)

// Options are what a Guard needs.
type Options struct {
	Reaper *mysqld.Reaper
	// Command is the watchdog's; the Board is its descriptor 3.
	Command func() mysqld.Command
	Log     logr.Logger
}

// Guard is the manager's side: it keeps a watchdog running.
type Guard struct {
	*Board
	o Options

	alive   atomic.Bool
	missing atomic.Int32 // looks in a row without a living one
	starts  atomic.Int32
}

// NewGuard makes the Board; nothing runs yet.
func NewGuard(o Options) (*Guard, error) {
	b, err := NewBoard()
	if err != nil {
		return nil, err
	}
	return &Guard{Board: b, o: o}, nil
}

// ErrUnwatched tells that the server must not be opened for writes now.
var ErrUnwatched = errors.New("the watchdog process does not run, or does not know the server yet")

// Ready says why a server with this process id must not be opened for writes.
func (g *Guard) Ready(pid int) error {
	if _, armed := g.Deadline(); !armed || !g.alive.Load() || g.Server() != pid {
		return ErrUnwatched
	}
	return nil
}

// Trusted tells that a server may stay writable: there is a living watchdog, or was one a moment ago.
func (g *Guard) Trusted() bool { return g.alive.Load() || g.missing.Load() < trustAfter }

// Starts is how many watchdogs have been started.
func (g *Guard) Starts() int { return int(g.starts.Load()) }

// Run keeps a watchdog running until ctx ends.
func (g *Guard) Run(ctx context.Context) error {
	for failing := false; ctx.Err() == nil; g.missing.Add(1) {
		err := g.once(ctx)
		g.alive.Store(false)
		if err != nil && !failing && ctx.Err() == nil {
			g.o.Log.Error(err, "the watchdog does not run")
		}
		failing = err != nil
		g.pause(ctx, restartPause)
	}
	return nil
}

// once is one watchdog from its start to its end.
func (g *Guard) once(ctx context.Context) error {
	command := g.o.Command()
	command.Files = append(command.Files, g.File())
	command.Output = func(line string) { g.o.Log.Info(line, "from", "watchdog") }
	before := g.beats()
	p, err := g.o.Reaper.Start(command)
	if err != nil {
		return fmt.Errorf("starting the watchdog: %w", err)
	}
	g.starts.Add(1)
	g.o.Log.V(1).Info("watchdog started", "pid", p.Pid())
	defer func() {
		if err := p.Kill(); err != nil {
			g.o.Log.Error(err, "ending the watchdog")
		}
	}()
	for deaf := 0; deaf < deafAfter; {
		select {
		case <-ctx.Done():
			return nil
		case <-p.Gone():
			exit, _ := p.Wait(ctx)
			return fmt.Errorf("it has ended: %s", exit)
		case <-time.After(beatCheck):
		}
		if now := g.beats(); now != before {
			before, deaf = now, 0
			g.alive.Store(true)
			g.missing.Store(0)
			continue
		}
		deaf++
		if !g.alive.Load() || deaf >= deafAfter/2 {
			g.missing.Add(1)
		}
	}
	return errors.New("it stands still")
}

func (g *Guard) pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
