package mysql

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cnmsql.co/operator/instance/flavor"
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
	rows, err := s.reader.QueryContext(ctx, "SHOW PROCESSLIST")
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

// isClient tells whether a session is to be ended when the server gives up its role: not the manager's own
// but those that stamp, not the server's own threads, and none by which a replica reads the binary log.
func (s *Server) isClient(c session) bool {
	if s.heartbeat.writes(c.id) {
		return true
	}
	switch c.user {
	case s.o.User, "system user", "event_scheduler", "unauthenticated user":
		return false
	}
	return !slices.Contains(s.o.KeepUsers, c.user) && !strings.HasPrefix(c.command, "Binlog Dump") && c.command != "Daemon"
}

// living are the chosen sessions up to an id that were not killed.
func living(list []session, upTo uint64, chosen func(session) bool) []session {
	var out []session
	for _, c := range list {
		if c.id <= upTo && chosen(c) && !c.killed() {
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
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	_, err := s.reader.ExecContext(ctx, "KILL "+strconv.FormatUint(id, 10))
	if err != nil && number(err) != errUnknownThread {
		return fmt.Errorf("killing a session: %w", err)
	}
	return nil
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
func (s *Server) KillClients(ctx context.Context) error { return s.killThose(ctx, s.isClient) }

// PrepareStop ends all that a clean stop would wait for, and lets no client in again: mysqld waits 2 s for any
// session, the manager's own included, and 8 s for replicas that read its binary log. It is the last thing
// before SIGTERM, when the role is given up. Connections of the manager are closed after use until WaitReady
// sees a server.
func (s *Server) PrepareStop(ctx context.Context) error {
	ctx, cancel := step(ctx)
	defer cancel()
	s.keepIdle(0)
	if err := s.short(ctx, "refusing clients before the stop", flavor.RefuseClients); err != nil {
		return err
	}
	if err := s.killThose(ctx, s.isClient); err != nil {
		return err
	}
	// What a killed session still has to undo, mysqld would wait for as well, but not longer than this.
	for until := time.Now().Add(unwindTime); time.Now().Before(until); {
		list, err := s.sessions(ctx)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(list, s.isClient) {
			break
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
	list, err := s.sessions(ctx)
	if err != nil {
		return err
	}
	// Last, and nothing after it: replicas are not refused, and come back at once.
	return s.killAll(ctx, living(list, highest(list), s.isReader))
}

// unwindTime is how long PrepareStop waits for killed sessions to be gone.
const unwindTime = time.Second

// isReader tells whether a session reads the binary log.
func (s *Server) isReader(c session) bool { return strings.HasPrefix(c.command, "Binlog Dump") }

func (s *Server) killThose(ctx context.Context, chosen func(session) bool) error {
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
		left := living(list, upTo, chosen)
		if len(left) == 0 {
			return nil
		}
		if err := s.killAll(ctx, left); err != nil {
			return err
		}
		if err := pause(ctx); err != nil {
			return fmt.Errorf("waiting for %d killed sessions to end: %w", len(left), err)
		}
	}
}

func pause(ctx context.Context) error {
	select {
	case <-time.After(sessionPoll):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
