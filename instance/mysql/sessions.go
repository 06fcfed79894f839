package mysql

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// sessionPoll is how often sessions that are being ended are looked at.
const sessionPoll = 20 * time.Millisecond

// session is one entry of the process list. Its statement is not read.
type session struct {
	id                   uint64
	user, command, state string
}

// killed tells that the session was killed: the server has shut its socket down, no answer reaches the
// client any more, even if the thread still waits for something.
func (c session) killed() bool { return c.command == "Killed" }

func (s *Server) sessions(ctx context.Context) ([]session, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	rows, err := s.db.QueryContext(ctx, "SHOW PROCESSLIST")
	if err != nil {
		return nil, fmt.Errorf("reading the process list: %w", err)
	}
	defer rows.Close()
	var out []session
	for rows.Next() {
		r, err := row(rows)
		if err != nil {
			return nil, fmt.Errorf("reading the process list: %w", err)
		}
		id, err := strconv.ParseUint(r["Id"], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("reading the process list: %w", err)
		}
		out = append(out, session{id: id, user: r["User"], command: r["Command"], state: r["State"]})
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading the process list: %w", err)
	}
	return out, nil
}

// isClient tells whether a session is to be ended when the server gives up its role: not the manager's own,
// not the server's own threads, and none by which a replica reads the binary log.
func (s *Server) isClient(c session) bool {
	switch c.user {
	case s.o.User, "system user", "event_scheduler", "unauthenticated user":
		return false
	}
	return !slices.Contains(s.o.KeepUsers, c.user) && !strings.HasPrefix(c.command, "Binlog Dump") && c.command != "Daemon"
}

// living are the clients' sessions up to an id that were not killed.
func (s *Server) living(list []session, upTo uint64) []session {
	var out []session
	for _, c := range list {
		if c.id <= upTo && s.isClient(c) && !c.killed() {
			out = append(out, c)
		}
	}
	return out
}

func highest(list []session) uint64 {
	var id uint64
	for _, c := range list {
		id = max(id, c.id)
	}
	return id
}

func (s *Server) kill(ctx context.Context, id uint64) error {
	err := s.short(ctx, "killing a session", "KILL "+strconv.FormatUint(id, 10))
	if number(err) == errUnknownThread {
		return nil
	}
	return err
}

func (s *Server) killAll(ctx context.Context, list []session) error {
	for _, c := range list {
		if err := s.kill(ctx, c.id); err != nil {
			return err
		}
	}
	return nil
}

// KillClients ends the sessions of all clients that are connected now and waits until no answer can reach
// them any more.
func (s *Server) KillClients(ctx context.Context) error {
	ctx, cancel := step(ctx)
	defer cancel()
	var upTo uint64
	for first := true; ; first = false {
		list, err := s.sessions(ctx)
		if err != nil {
			return err
		}
		if first {
			upTo = highest(list)
		}
		clients := s.living(list, upTo)
		if len(clients) == 0 {
			return nil
		}
		if err := s.killAll(ctx, clients); err != nil {
			return err
		}
		if err := pause(ctx, sessionPoll); err != nil {
			return fmt.Errorf("waiting for %d killed sessions to end: %w", len(clients), err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
