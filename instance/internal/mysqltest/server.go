package mysqltest

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/mycnf"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/provision"
)

// Accounts of every server here, with passwords that are awkward on purpose.
var Accounts = provision.Accounts{
	Root:               `r'o"o\t;#%p@/:? é`,
	Control:            provision.Account{User: "cnmsql_control", Password: `c'o"n\t;#%p@/:? é--` + "\t"},
	Replication:        provision.Account{User: "cnmsql_replication", Password: `r'e"p\l;#%p@/:? é 0123456789abc`},
	ReplicationSubject: ReplicationSubject,
}

// small keeps a server's memory and its start small.
var small = map[string]string{
	"innodb_buffer_pool_size":                                  "64M",
	"innodb_redo_log_capacity":                                 "32M",
	"innodb_log_buffer_size":                                   "1M",
	"key_buffer_size":                                          "1M",
	"max_connections":                                          "100",
	"table_open_cache":                                         "200",
	"performance_schema_max_table_instances":                   "400",
	"performance_schema_max_thread_instances":                  "300",
	"performance_schema_events_waits_history_long_size":        "10",
	"performance_schema_events_statements_history_long_size":   "10",
	"performance_schema_events_stages_history_long_size":       "10",
	"performance_schema_events_transactions_history_long_size": "10",
	"performance_schema_digests_size":                          "100",
}

// Options of a server.
type Options struct {
	// Parameters are the user's.
	Parameters map[string]string
	// PKI signs its certificate; nil makes an authority for this server alone.
	PKI *PKI
	// MySQL are further options of the connection.
	MySQL mysql.Options
}

// Server is a server of a test.
type Server struct {
	Root, Dir, Name string
	Port            int
	Socket, Cnf     string
	Layout          provision.Layout
	PKI             *PKI
	TLS             Pair
	Reaper          *mysqld.Reaper
	Supervisor      *mysqld.Supervisor
	SQL             *mysql.Server
}

// New prepares a server without data. It does not run yet; it ends with the test.
func New(t testing.TB, name string, o Options) *Server {
	t.Helper()
	s := &Server{Root: Root(t), Name: name, Port: freePort(t), PKI: o.PKI, Reaper: Reaper()}
	dir, err := os.MkdirTemp("", "mysqltest") // short: the path of a socket has at most 107 characters
	check(t, err)
	s.Dir = dir
	if s.PKI == nil {
		s.PKI = NewPKI(t)
	}
	s.TLS = s.PKI.Issue(t, name)
	s.Socket = filepath.Join(dir, "mysql.sock")
	s.Cnf = filepath.Join(dir, "my.cnf")
	s.Layout = provision.Layout{State: filepath.Join(dir, "cnmsql"), Data: filepath.Join(dir, "data"), Binlog: filepath.Join(dir, "binlog")}
	s.writeCnf(t, o.Parameters)

	m := o.MySQL
	m.Socket, m.User = s.Socket, Accounts.Control.User
	m.Password = func() (string, error) { return Accounts.Control.Password, nil }
	m.KeepUsers = []string{Accounts.Replication.User}
	m.Log = Log(t, name)
	s.SQL = mysql.Open(m)
	var over atomic.Bool
	s.Supervisor = mysqld.NewSupervisor(mysqld.SupervisorOptions{
		Reaper:  s.Reaper,
		Prepare: func(context.Context) (mysqld.Command, error) { return s.Command(), nil },
		Ready:   s.SQL.WaitReady,
		BeforeStop: func(ctx context.Context) {
			if err := s.SQL.PrepareStop(ctx); err != nil && !over.Load() {
				t.Errorf("preparing the stop of %s: %v", name, err)
			}
		},
		Log: Log(t, name),
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		over.Store(true)
		s.Supervisor.Kill()
		if err := s.Supervisor.Stop(ctx); err != nil {
			t.Error(err)
		}
		s.SQL.Close()
		_ = os.RemoveAll(dir)
	})
	return s
}

// Start makes a server from the template and waits until it answers.
func Start(t testing.TB, name string, o Options) *Server {
	t.Helper()
	s := New(t, name, o)
	s.FromTemplate(t)
	s.Run(t)
	return s
}

// Run starts the server and waits until it answers.
func (s *Server) Run(t testing.TB) {
	t.Helper()
	s.Supervisor.Start()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	st, err := s.Supervisor.Await(ctx, func(st mysqld.State) bool { return st.Server == "running" || st.Restarts > 2 })
	if err != nil || st.Restarts > 2 {
		t.Fatalf("%s does not run: %+v (%v)", s.Name, st, err)
	}
}

// Command runs the server.
func (s *Server) Command() mysqld.Command { return Mysqld(s.Root, s.Cnf) }

// writeCnf writes the same option file that an instance has.
func (s *Server) writeCnf(t testing.TB, parameters map[string]string) {
	t.Helper()
	server, err := flavor.Detect("9.7.4")
	check(t, err)
	in := mycnf.Input{
		Server: server, InstanceName: s.Name, ServerID: uint32(s.Port), ReportHost: "127.0.0.1", Port: uint16(s.Port),
		DataDir: s.Layout.Data, BinlogDir: s.Layout.Binlog,
		SocketPath: s.Socket, PidFile: filepath.Join(s.Dir, "pid"), TmpDir: s.Dir,
		TLS:        mycnf.TLS{CA: s.PKI.CA, Cert: s.TLS.Cert, Key: s.TLS.Key},
		SemiSync:   mycnf.SemiSync{Enabled: true, TimeoutMillis: 3600_000, WaitForReplicaCount: 1},
		Parameters: maps.Clone(small),
	}
	maps.Copy(in.Parameters, parameters)
	text, err := mycnf.Render(in)
	check(t, err)
	check(t, os.WriteFile(s.Cnf, []byte(text), 0o600))
}

// Source is this server for a replica with the given replication certificate.
func (s *Server) Source(client Pair) mysql.Source {
	return mysql.Source{
		Host: "127.0.0.1", Port: uint16(s.Port),
		User: Accounts.Replication.User, Password: Accounts.Replication.Password,
		CA: s.PKI.CA, Cert: client.Cert, Key: client.Key,
	}
}

// Follow replicates from a source, whatever this server holds.
func (s *Server) Follow(ctx context.Context, source mysql.Source) error {
	m, err := s.SQL.Read(ctx)
	if err != nil {
		return err
	}
	return s.SQL.Follow(ctx, source, m.Held())
}

// DB is a client's connections as root through the socket, or through TCP as another account.
func (s *Server) DB(t testing.TB) *sql.DB {
	t.Helper()
	return s.connect(t, "unix", s.Socket, "root", Accounts.Root)
}

// Client is connections over TCP with TLS.
func (s *Server) Client(t testing.TB, user, password string) *sql.DB {
	t.Helper()
	return s.connect(t, "tcp", fmt.Sprintf("127.0.0.1:%d", s.Port), user, password)
}

func (s *Server) connect(t testing.TB, network, address, user, password string) *sql.DB {
	t.Helper()
	c := driver.NewConfig()
	c.Net, c.Addr, c.User, c.Passwd = network, address, user, password
	c.Logger = &driver.NopLogger{}
	if network == "tcp" {
		c.TLSConfig = "skip-verify"
	}
	connector, err := driver.NewConnector(c)
	check(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// Exec runs statements as root.
func (s *Server) Exec(t testing.TB, statements ...string) {
	t.Helper()
	db := s.DB(t)
	defer db.Close()
	for _, q := range statements {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatalf("%s: %s: %v", s.Name, q, err)
		}
	}
}

// Query is the one value of a query as root.
func (s *Server) Query(t testing.TB, query string) string {
	t.Helper()
	db := s.DB(t)
	defer db.Close()
	var v sql.NullString
	if err := db.QueryRowContext(t.Context(), query).Scan(&v); err != nil {
		t.Fatalf("%s: %s: %v", s.Name, query, err)
	}
	return v.String
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
