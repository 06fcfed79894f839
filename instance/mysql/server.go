package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	driver "github.com/go-sql-driver/mysql"
)

// DefaultTimeout bounds a read of the server's facts.
const DefaultTimeout = 5 * time.Second

// Options are how to reach the server.
type Options struct {
	// Socket is the path of the server's Unix socket.
	Socket string
	// User logs in there; its Password is asked for before each new connection.
	User     string
	Password func() (string, error)
	// KeepUsers are further accounts whose sessions are never killed: the replication account, which cannot
	// write and by which replicas read the binary log and clone.
	KeepUsers []string
	// Timeout bounds each read and each statement that waits for nothing. Default: DefaultTimeout.
	Timeout time.Duration
	Log     logr.Logger
}

// Server is one mysqld, reached through its socket. It may be used by several goroutines at once, and
// whether or not the server runs.
type Server struct {
	o      Options
	db     *sql.DB
	reader *sql.DB // takes several statements at once; only constant text is sent there
	beats  heartbeats
}

// Open makes no connection yet.
func Open(o Options) *Server {
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	return &Server{o: o, db: open(o, false), reader: open(o, true)}
}

// Close closes all connections.
func (s *Server) Close() {
	_ = s.db.Close()
	_ = s.reader.Close()
}

func open(o Options, multi bool) *sql.DB {
	c := driver.NewConfig()
	c.Net, c.Addr, c.User = "unix", o.Socket, o.User
	c.Timeout = o.Timeout
	c.MultiStatements = multi
	c.Logger = &driver.NopLogger{}
	// Nothing that a user configured for sessions may change what our statements mean.
	c.Params = map[string]string{
		"sql_mode":          "''",
		"time_zone":         "'+00:00'",
		"autocommit":        "1",
		"wait_timeout":      "86400",
		"lock_wait_timeout": "86400",
	}
	_ = c.Apply(driver.BeforeConnect(func(_ context.Context, c *driver.Config) error {
		if o.Password == nil {
			return nil
		}
		password, err := o.Password()
		if err != nil {
			return fmt.Errorf("reading the password of %s: %w", o.User, err)
		}
		c.Passwd = password
		return nil
	}))
	connector, err := driver.NewConnector(c)
	if err != nil { // only for contradictions in c, which is ours
		panic("mysql: " + err.Error())
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(8)
	db.SetMaxIdleConns(2)
	return db
}

// WaitReady waits until the server accepts connections and the control account can log in. When ctx ends
// first, the error says what the last try met.
func (s *Server) WaitReady(ctx context.Context) error {
	pause := 2 * time.Millisecond
	for {
		err := s.Ping(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the server to accept connections: %w (last try: %w)", ctx.Err(), err)
		case <-time.After(pause):
		}
		pause = min(2*pause, 50*time.Millisecond)
	}
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
