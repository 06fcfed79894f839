package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"cnmsql.co/operator/instance/flavor"
)

// closing is one SET GLOBAL super_read_only = ON under way, on a connection of its own. The statement waits
// for the locks of statements and commits that are under way, and keeps new ones out while it waits.
type closing struct {
	s    *Server
	conn *sql.Conn
	id   uint64
	stop context.CancelFunc
	done chan struct{}
	err  error // once done
}

func (s *Server) startClosing(ctx context.Context) (*closing, error) {
	// An opening that was allowed before it became forbidden has to be over, or it would come last.
	s.opening.Lock()
	s.opening.Unlock() //nolint:staticcheck // the wait is the purpose
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, fmt.Errorf("connecting to make the server read-only: %w", err)
	}
	c := &closing{s: s, conn: conn, done: make(chan struct{})}
	if err := conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&c.id); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("connecting to make the server read-only: %w", err)
	}
	// Not ended by ctx: the driver would hang up and leave the statement waiting in the server.
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	c.stop = stop
	go func() {
		defer close(c.done)
		_, c.err = conn.ExecContext(background, flavor.CloseForWrites)
	}()
	return c, nil
}

// finished tells whether the statement has returned.
func (c *closing) finished() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// end takes the statement back if it still waits, so that it does not close a server later that was opened
// again in the meantime.
func (c *closing) end() {
	if !c.finished() {
		ctx, cancel := context.WithTimeout(context.Background(), c.s.o.Timeout)
		defer cancel()
		if err := c.s.kill(ctx, c.id); err != nil {
			c.s.o.Log.Error(err, "taking back the unfinished closing for writes")
		}
		select {
		case <-c.done:
		case <-time.After(time.Second):
		}
	}
	c.stop()
	<-c.done
	_ = c.conn.Close()
}
