package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"sync"
	"time"

	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

// Error numbers of a server that has no heartbeat table, or one without our column, and of one that is read-only.
const (
	errUnknownDatabase = 1049
	errUnknownColumn   = 1054
	errNoSuchTable     = 1146
	errOptionPrevents  = 1290
)

// Why a stamp is not written.
var (
	// ErrReadOnly: the server is read-only.
	ErrReadOnly = errors.New("the server is read-only")
	// ErrUnacknowledged: commits would wait for replicas that are not attached.
	ErrUnacknowledged = errors.New("there are fewer replicas than must acknowledge")
)

// A new primary leaves numbers out before its first stamp: others may have stamps that it lacks, those that its predecessor
// wrote while it was cut off, and all that were written since a replica fell behind that then got the role. Who has a number
// already would not acknowledge the stamp that gets it.
const (
	// stampsAside is more than can be written between two renewals of the lease that a primary needs.
	stampsAside = 64
	// stampsFar bounds what is left out for a replica that fell behind: an hour of stamps.
	stampsFar = 7200
	// shortestInterval is the least time between two stamps that a Cluster may ask for.
	shortestInterval = 500 * time.Millisecond
)

// heartbeat is what a Server knows of its stamps.
type heartbeat struct {
	// db is for the stamp under way and for the gap that is being filled.
	db *sql.DB
	// turn is held while a stamp is written that needs no acknowledgement, and while commits are made to need them.
	turn chan struct{}

	mu sync.Mutex
	// sessions are the ids of those that write now.
	sessions map[uint64]bool
	// seen are the stamps of every primary that this server had executed when it was last read.
	seen gtid.Set
	// written is the number of the last stamp that this process wrote, in the generation reign; 0 when it wrote none.
	written uint64
	reign   int64
}

// split takes the stamps out of the sets that were read.
func (h *heartbeat) split(m *protocol.MySQL) {
	seen := m.Executed.BySource(flavor.HeartbeatSource)
	h.mu.Lock()
	h.seen = seen
	h.mu.Unlock()
	m.Executed, m.Purged = m.Executed.WithoutSource(flavor.HeartbeatSource), m.Purged.WithoutSource(flavor.HeartbeatSource)
	if m.Replication != nil {
		m.Replication.Received = m.Replication.Received.WithoutSource(flavor.HeartbeatSource)
	}
}

// next is the number of the next stamp in a generation. Within one it counts on: nobody else stamps. That a process of
// before, or a server of before, has stamped in it, the rows tell.
func (h *heartbeat) next(ctx context.Context, conn *sql.Conn, server uint32, generation int64) (uint64, error) {
	h.mu.Lock()
	last, goesOn := h.seen.Last(flavor.HeartbeatSource), h.written > 0 && h.reign == generation
	if goesOn {
		last = max(last, h.written)
	}
	h.mu.Unlock()
	if goesOn {
		return last + 1, nil
	}
	rows, err := conn.QueryContext(ctx, flavor.ReadHeartbeats)
	if err != nil {
		return 0, err
	}
	all, err := stampsOf(rows)
	if err != nil {
		return 0, err
	}
	return last + 1 + aside(all, server, generation, time.Now()), nil
}

// aside is how many numbers are left out before the next stamp in a generation, by the stamps that there are.
func aside(all []Stamp, server uint32, generation int64, now time.Time) uint64 {
	var newest time.Time
	for _, s := range all {
		if s.ServerID == server && s.Generation == generation {
			return 0
		}
		if s.At.After(newest) {
			newest = s.At
		}
	}
	switch {
	case newest.IsZero() && generation <= 1:
		return 0
	case newest.IsZero():
		return stampsAside
	}
	missed := max(now.Sub(newest)/shortestInterval, 0)
	return stampsAside + uint64(min(missed, stampsFar)) // #nosec G115 -- not negative
}

// writes tells whether a session is writing a stamp. Who closes the server for writes ends it like a client's.
func (h *heartbeat) writes(session uint64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[session]
}

// begin is a connection whose session is known as one that writes, until end.
func (h *heartbeat) begin(ctx context.Context) (conn *sql.Conn, server uint32, end func(), err error) {
	conn, err = h.db.Conn(ctx)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("connecting for the heartbeat: %w", err)
	}
	var id uint64
	if err := conn.QueryRowContext(ctx, "SELECT CONNECTION_ID(), @@global.server_id").Scan(&id, &server); err != nil {
		_ = conn.Close()
		return nil, 0, nil, fmt.Errorf("connecting for the heartbeat: %w", err)
	}
	h.mu.Lock()
	h.sessions[id] = true
	h.mu.Unlock()
	end = func() {
		h.mu.Lock()
		delete(h.sessions, id)
		h.mu.Unlock()
		_ = conn.Close()
	}
	// Whoever closes the server from now on ends this session. Was it closed before, an empty transaction would get through.
	var readOnly bool
	if err = conn.QueryRowContext(ctx, "SELECT @@global.super_read_only").Scan(&readOnly); err == nil && readOnly {
		err = ErrReadOnly
	}
	if err != nil {
		end()
		return nil, 0, nil, fmt.Errorf("connecting for the heartbeat: %w", err)
	}
	return conn, server, end, nil
}

// Stamp writes the present time into the heartbeat table, as this server's row, and returns once the commit has been
// acknowledged like any other, which may take as long as acknowledgements are waited for: ctx ends the waiting of the
// caller only. Where it would wait for replicas that are not there it is not begun: a server is not cloned while a transaction
// of it is between the binary log and its commit. The table is made when it is missing. generation is that in which this
// server is the primary. One stamp at a time.
func (s *Server) Stamp(ctx context.Context, generation int64) error {
	leave, err := s.acknowledgeable(ctx)
	if err != nil {
		return err
	}
	defer leave()
	conn, server, end, err := s.heartbeat.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	err = s.heartbeat.stamp(ctx, conn, server, generation)
	switch number(err) {
	case errUnknownDatabase, errNoSuchTable:
		err = run(ctx, conn, flavor.CreateHeartbeatDatabase, flavor.CreateHeartbeatTable)
	case errUnknownColumn:
		if err = run(ctx, conn, flavor.TryHeartbeatTable); err != nil {
			return fmt.Errorf("the table heartbeat.heartbeat is not that of pt-heartbeat: rename it, or disable spec.replication.heartbeat: %w", err)
		}
		err = run(ctx, conn, flavor.AddHeartbeatGeneration)
	case errOptionPrevents:
		return fmt.Errorf("writing the heartbeat: %w", ErrReadOnly)
	default:
		if err != nil {
			return fmt.Errorf("writing the heartbeat: %w", err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("making the table of the heartbeat: %w", err)
	}
	if err := s.heartbeat.stamp(ctx, conn, server, generation); err != nil {
		return fmt.Errorf("writing the heartbeat: %w", err)
	}
	return nil
}

// acknowledgeable is an error where a commit would wait for replicas that are not attached. Where no commit waits, none
// begins to before leave is called.
func (s *Server) acknowledgeable(ctx context.Context) (leave func(), err error) {
	leave, err = s.heartbeat.alone(ctx)
	if err != nil {
		return nil, fmt.Errorf("writing the heartbeat: %w", err)
	}
	m, err := s.Read(ctx)
	if err == nil && !m.SemiSync.CanAcknowledge() {
		err = ErrUnacknowledged
	}
	if err != nil {
		leave()
		return nil, fmt.Errorf("writing the heartbeat: %w", err)
	}
	if m.SemiSync.SourceEnabled {
		// This commit may wait, and nobody is to wait for it.
		leave()
		return func() {}, nil
	}
	return leave, nil
}

// alone waits until nobody else is between looking whether commits wait for acknowledgements and what follows from that.
func (h *heartbeat) alone(ctx context.Context) (leave func(), err error) {
	select {
	case h.turn <- struct{}{}:
		return func() { <-h.turn }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *heartbeat) stamp(ctx context.Context, conn *sql.Conn, server uint32, generation int64) error {
	next, err := h.next(ctx, conn, server, generation)
	if err != nil {
		return err
	}
	if err := numbered(ctx, conn, next, flavor.Stamp(server, generation, time.Now())); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.written, h.reign = next, generation
	return nil
}

// FillStamps writes an empty transaction under each number below the last stamp that this server does not have, so that
// no server holds a stamp that another one lacks: should that one's primary be made of it, long after the stamp has left
// its binary logs, the other could not follow. A commit that is acknowledged only by servers which had the number
// before waits until the next stamp is acknowledged. It returns how many it wrote, and does nothing on a server that has
// all.
func (s *Server) FillStamps(ctx context.Context) (int, error) {
	conn, _, end, err := s.heartbeat.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	var executed string
	if err := conn.QueryRowContext(ctx, "SELECT @@global.gtid_executed").Scan(&executed); err != nil {
		return 0, fmt.Errorf("reading the numbers of the heartbeat: %w", err)
	}
	all, err := gtid.Parse(executed)
	if err != nil {
		return 0, fmt.Errorf("reading the numbers of the heartbeat: %w", err)
	}
	all = all.BySource(flavor.HeartbeatSource)
	gap := all.FirstGap(flavor.HeartbeatSource)
	n := 0
	for ; gap != 0; gap = all.FirstGap(flavor.HeartbeatSource) {
		if err := numbered(ctx, conn, gap, "COMMIT"); err != nil {
			return n, fmt.Errorf("filling a gap in the numbers of the heartbeat: %w", err)
		}
		n++
		filled, err := gtid.Parse(fmt.Sprintf("%s:%d", flavor.HeartbeatSource, gap))
		if err != nil {
			return n, err
		}
		all = all.Union(filled)
	}
	return n, nil
}

// numbered runs a statement as the transaction with this number. One whose number the server has already it passes over,
// without an error.
func numbered(ctx context.Context, conn *sql.Conn, number uint64, statement string) error {
	if err := run(ctx, conn, flavor.NumberStamp(number)); err != nil {
		return err
	}
	err := run(ctx, conn, statement)
	if failed := automatic(ctx, conn, err != nil); failed != nil {
		// The session may still hold the number: it must not be used again.
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
		return errors.Join(err, failed)
	}
	return err
}

// automatic lets the server number the session's transactions again.
func automatic(ctx context.Context, conn *sql.Conn, holds bool) error {
	if holds {
		return run(ctx, conn, flavor.Rollback, flavor.NumberAutomatically)
	}
	return run(ctx, conn, flavor.NumberAutomatically)
}

func run(ctx context.Context, conn *sql.Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Stamp is the newest stamp of one server.
type Stamp struct {
	ServerID uint32
	// Generation is that in which it was written; 0 when somebody else wrote it.
	Generation int64
	At         time.Time
}

// Stamps are the newest stamp of each server that ever wrote one, as far as this server has applied them. There are none
// where the table is missing, or is not ours yet. A row that holds no time is left out.
func (s *Server) Stamps(ctx context.Context) ([]Stamp, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	rows, err := s.reader.QueryContext(ctx, flavor.ReadHeartbeats)
	switch number(err) {
	case errUnknownDatabase, errNoSuchTable, errUnknownColumn:
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the heartbeat: %w", err)
	}
	all, err := stampsOf(rows)
	if err != nil {
		return nil, fmt.Errorf("reading the heartbeat: %w", err)
	}
	return all, nil
}

// stampsOf reads rows to their end.
func stampsOf(rows *sql.Rows) ([]Stamp, error) {
	defer rows.Close()
	var all []Stamp
	for rows.Next() {
		var s Stamp
		var text string
		if err := rows.Scan(&s.ServerID, &text, &s.Generation); err != nil {
			return nil, err
		}
		var err error
		if s.At, err = flavor.ParseStamp(text); err == nil {
			all = append(all, s)
		}
	}
	return all, rows.Err()
}
