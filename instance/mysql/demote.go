package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"cnmsql.co/operator/instance/flavor"
)

// DemoteOptions bound the parts of a step-down.
type DemoteOptions struct {
	// DrainAfter is how long client transactions that keep the server from becoming read-only may take to
	// finish by themselves before their connections are killed.
	DrainAfter time.Duration
	// Admit lets clients begin sessions again once theirs have ended: to read, where nobody else is going to take
	// their writes.
	Admit bool
}

// Demote makes a writable server read-only, in the one order in which no client is told of a commit that
// the replicas do not have:
//
//  1. SET GLOBAL super_read_only = ON is sent. From when it waits for its locks, no new statement begins to
//     write.
//  2. When it has succeeded, or after DrainAfter, clients are refused, and their connections are killed until
//     every one that was there before is gone or shut. A commit that waits for acknowledgements is not ended
//     by that, but nobody can be answered any more.
//  3. Only then, if commits still wait for acknowledgements, the source side of semi-synchronous replication
//     is switched off, which lets them go. Earlier it would have answered clients that their unacknowledged
//     commits succeeded.
//  4. When the statement has returned, read-only is read back.
//
// Anything else than a confirmed read-only server is an error; the statement is then taken back, and before it what
// step 3 did. Repeated on a read-only server it only ends the clients' sessions.
//
// Clients stay refused until OpenWrites or AdmitClients: a client that is still led here connects anew
// elsewhere a moment later, instead of keeping a session with a server that will not take its writes.
func (s *Server) Demote(ctx context.Context, o DemoteOptions) error {
	ctx, cancel := step(ctx)
	defer cancel()
	c, err := s.startClosing(ctx)
	if err != nil {
		return err
	}
	defer c.end()
	select {
	case <-c.done:
	case <-time.After(o.DrainAfter):
	case <-ctx.Done():
	}
	if !o.Admit {
		if _, err := s.reader.ExecContext(ctx, flavor.RefuseClients); err != nil {
			return fmt.Errorf("refusing clients: %w", err)
		}
	}
	released, err := s.endClients(ctx, c)
	if err != nil {
		if released {
			// Before the closing is taken back: whoever waited behind it would commit without an acknowledgement.
			again, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.o.Timeout)
			defer cancel()
			err = errors.Join(err, s.awaitAcknowledgements(again, true))
		}
		return err
	}
	return s.confirmReadOnly(ctx)
}

// endClients returns when the closing has succeeded and no client can be answered that was connected before. It tells
// whether the wait for acknowledgements was ended for that.
func (s *Server) endClients(ctx context.Context, c *closing) (released bool, err error) {
	var upTo uint64 // sessions begun later met the closed door
	for {
		closed := c.finished()
		if closed && c.err != nil {
			return released, fmt.Errorf("making the server read-only: %w", c.err)
		}
		list, err := s.sessions(ctx)
		if err != nil {
			return released, err
		}
		waits := closed || c.waits(list)
		if waits && upTo == 0 {
			upTo = highest(list)
		}
		clients := living(list, highest(list), s.isClient)
		if err := s.killAll(ctx, clients); err != nil {
			return released, err
		}
		if waits && len(living(list, upTo, s.isClient)) == 0 {
			if closed {
				return released, nil
			}
			if !released {
				if released, err = s.releaseWaiters(ctx); err != nil {
					return released, err
				}
			}
		}
		if err := c.pause(ctx); err != nil {
			return released, fmt.Errorf("making the server read-only: %d client sessions left, closed %t: %w", len(clients), closed, err)
		}
	}
}

// waits tells whether the statement was seen to wait for its locks.
func (c *closing) waits(list []session) bool {
	for _, other := range list {
		if other.id == c.id {
			return strings.HasPrefix(other.state, "Waiting for ")
		}
	}
	return false
}

func (c *closing) pause(ctx context.Context) error {
	if c.finished() {
		return pause(ctx)
	}
	select {
	case <-c.done:
	case <-time.After(sessionPoll):
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// releaseWaiters ends the wait for acknowledgements, if somebody waits. The caller made sure that no client
// can be answered.
func (s *Server) releaseWaiters(ctx context.Context) (bool, error) {
	m, err := s.Read(ctx)
	if err != nil {
		return false, err
	}
	if m.SemiSync.Waiting == 0 {
		return false, nil
	}
	s.o.Log.Info("commits still wait for acknowledgements and no client can be answered: letting them go", "waiting", m.SemiSync.Waiting)
	return true, s.awaitAcknowledgements(ctx, false) // with an error, too, it may have happened
}

// awaitAcknowledgements lets commits wait for acknowledgements, or ends that.
func (s *Server) awaitAcknowledgements(ctx context.Context, wait bool) error {
	dialect, err := s.dialect(ctx)
	if err != nil {
		return err
	}
	if _, err := s.reader.ExecContext(ctx, flavor.SetGlobal(dialect.SemiSync.SourceEnabled, onOff(wait))); err != nil {
		return fmt.Errorf("setting whether commits wait for acknowledgements: %w", err)
	}
	return nil
}
