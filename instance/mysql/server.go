package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/operator/instance/flavor"
)

// Bounds of calls whose context has no earlier end.
const (
	// DefaultTimeout bounds a read, and each statement that has nothing to wait for.
	DefaultTimeout = 5 * time.Second
	// StepTimeout bounds a step that waits for threads, sessions or locks.
	StepTimeout = 60 * time.Second
)

// Options are how to reach the server.
type Options struct {
	// Socket is the path of the server's Unix socket.
	Socket string
	// User logs in there; its Password is asked for before each new connection. When that is not the account's, or
	// cannot be had, the last one is used with which a connection was opened.
	User     string
	Password func() (string, error)
	// KeepUsers are further accounts whose sessions are never killed: the replication account, which cannot
	// write and by which replicas read the binary log and clone. It needs CONNECTION_ADMIN not to be refused with
	// the clients.
	KeepUsers []string
	// MayOpen is asked directly before writes are opened; its error prevents that. A closing that is asked
	// for after it began to say no is never overtaken by an opening that was under way.
	MayOpen func() error
	// Timeout replaces DefaultTimeout.
	Timeout time.Duration
	// ServerSession leaves the session variables as the server has them, for statements of users.
	ServerSession bool
	Log           logr.Logger
}

// Server is one mysqld, reached through its socket. It may be used by several goroutines at once, and
// whether or not the server runs.
type Server struct {
	o  Options
	db *sql.DB
	// reader takes several statements at once, so only text of our own is sent there. All that a step-down
	// needs besides its one waiting statement goes this way: where clients have used up all connections,
	// there is one idle in each pool.
	reader *sql.DB
	beats  beats

	heartbeat heartbeat

	// opening is held while writes are being opened.
	opening sync.Mutex

	mu     sync.Mutex
	flavor *flavor.Server
}

// Open makes no connection yet.
func Open(o Options) *Server {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	l := &login{}
	return &Server{
		o: o, db: open(o, false, l, nil), reader: open(o, true, l, nil),
		heartbeat: heartbeat{db: open(o, false, l, flavor.HeartbeatSession), sessions: map[uint64]bool{}, turn: make(chan struct{}, 1)},
	}
}

// Close closes all connections.
func (s *Server) Close() {
	_ = s.db.Close()
	_ = s.reader.Close()
	_ = s.heartbeat.db.Close()
}

func open(o Options, several bool, l *login, session map[string]string) *sql.DB {
	c := driver.NewConfig()
	c.Net, c.Addr, c.User = "unix", o.Socket, o.User
	c.Timeout = o.Timeout
	c.MultiStatements = several
	c.Logger = &driver.NopLogger{}
	if !o.ServerSession {
		// Nothing that a user configured for sessions may change what our statements mean.
		c.Params = map[string]string{"sql_mode": "''", "time_zone": "'+00:00'", "autocommit": "1", "wait_timeout": "86400"}
		maps.Copy(c.Params, session)
	}
	present := func() (string, error) {
		if o.Password == nil {
			return "", nil
		}
		password, err := o.Password()
		if err != nil {
			return "", fmt.Errorf("reading the password of %s: %w", o.User, err)
		}
		return password, nil
	}
	db := sql.OpenDB(connector{config: c, present: present, login: l})
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(idleConnections)
	return db
}

// idleConnections are kept open for the next call.
const idleConnections = 2

func (s *Server) keepIdle(n int) {
	s.db.SetMaxIdleConns(n)
	s.reader.SetMaxIdleConns(n)
	s.heartbeat.db.SetMaxIdleConns(min(n, 1))
}

// WaitReady waits until the server accepts connections and the account can log in. When ctx ends first,
// the error says what the last try met.
func (s *Server) WaitReady(ctx context.Context) error {
	pause := 2 * time.Millisecond
	var last error
	for {
		err := s.Ping(ctx)
		if err == nil {
			s.keepIdle(idleConnections)
			return nil
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the server to accept connections: %w (last try: %w)", ctx.Err(), orErr(last, err))
		case <-time.After(pause):
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
}

func orErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// Ping makes sure that the server answers.
func (s *Server) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	return s.db.PingContext(ctx)
}

// Version is the server's version text, such as 9.7.4-2.
func (s *Server) Version(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	var v string
	if err := s.db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&v); err != nil {
		return "", fmt.Errorf("reading the version: %w", err)
	}
	return v, nil
}

// dialect is the server's flavor, asked once.
func (s *Server) dialect(ctx context.Context) (flavor.Server, error) {
	s.mu.Lock()
	known := s.flavor
	s.mu.Unlock()
	if known != nil {
		return *known, nil
	}
	text, err := s.Version(ctx)
	if err != nil {
		return flavor.Server{}, err
	}
	f, err := flavor.Detect(text)
	if err != nil {
		return flavor.Server{}, fmt.Errorf("recognising the server: %w", err)
	}
	s.mu.Lock()
	s.flavor = &f
	s.mu.Unlock()
	return f, nil
}
