package mycnf_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/mycnf"
)

// pair are a source and its one replica, which acknowledges. One of them is on a disk whose power can be cut. The replica
// reaches the source through a wire that can be cut as well.
type pair struct {
	source, replica *realServer
	blank           *disk
	wire            *wire
}

// newPair makes two servers without a transaction that are alike but for their names. onDisk is which of them has the disk;
// nil is none.
func newPair(t *testing.T, onDisk func(*pair) *realServer) *pair {
	t.Helper()
	place := func(id uint32, port uint16) func(*mycnf.Input) {
		return func(in *mycnf.Input) {
			in.ServerID, in.Port = id, port
			dir := strings.TrimSuffix(in.TmpDir, "/tmp")
			in.DataDir, in.BinlogDir = dir+"/disk/data", dir+"/disk/log"
		}
	}
	p := &pair{source: newRealServer(t, semiSync, place(1, freePort(t))), replica: newRealServer(t, semiSync, place(2, freePort(t)))}
	p.source.initialise(t)
	first := p.source.start(t)
	p.source.query(t, `SET GLOBAL offline_mode = OFF, GLOBAL super_read_only = OFF, GLOBAL read_only = OFF; SET sql_log_bin = 0;
		CREATE USER r IDENTIFIED BY 'r'; GRANT REPLICATION SLAVE, CONNECTION_ADMIN ON *.* TO r; CREATE DATABASE d; CREATE TABLE d.t (id BIGINT PRIMARY KEY, fill LONGBLOB)`)
	first.stop(t)
	// The index of binary logs has paths of this server, the other file its name.
	shell(t, "rm -r "+p.source.in.BinlogDir+" "+p.source.in.DataDir+"/auto.cnf")
	shell(t, "mkdir "+p.source.in.BinlogDir)
	shell(t, "cp -a "+p.source.dir+"/disk/. "+p.replica.dir+"/disk")
	if crashing := onDisk(p); crashing != nil {
		p.moveToDisk(t, crashing)
	}
	p.wire = &wire{port: freePort(t), to: fmt.Sprintf("127.0.0.1:%d", p.source.in.Port)}
	t.Cleanup(p.wire.cut)
	return p
}

// moveToDisk makes the data of a server the content of a disk.
func (p *pair) moveToDisk(t *testing.T, crashing *realServer) {
	t.Helper()
	content := crashing.dir + "/content"
	if err := os.Rename(crashing.dir+"/disk", content); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(crashing.dir+"/disk", 0o750); err != nil {
		t.Fatal(err)
	}
	p.blank = newDisk(t, content, crashing.dir+"/disk")
}

// connect makes the replica follow the source, and both semi-synchronous. What there was of an earlier trial is gone.
func (p *pair) connect(t *testing.T) {
	t.Helper()
	p.wire.plugIn(t)
	for _, s := range []*realServer{p.source, p.replica} {
		s.query(t, "STOP REPLICA; RESET REPLICA ALL; SET GLOBAL super_read_only = OFF, GLOBAL read_only = OFF; SET sql_log_bin = 0; TRUNCATE d.t; RESET BINARY LOGS AND GTIDS")
	}
	p.source.query(t, "SET GLOBAL rpl_semi_sync_source_enabled = ON")
	p.replica.query(t, fmt.Sprintf(`SET GLOBAL rpl_semi_sync_replica_enabled = ON; CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d,
		SOURCE_USER = 'r', SOURCE_PASSWORD = 'r', SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1, SOURCE_CONNECT_RETRY = 1; START REPLICA`, p.wire.port))
	awaitTrue(t, p.source, "SELECT variable_value = 1 FROM performance_schema.global_status WHERE variable_name = 'Rpl_semi_sync_source_clients'")
}

// disconnect takes the source away for good, and lets those go who wait for its acknowledgements.
func (p *pair) disconnect(t *testing.T) {
	t.Helper()
	p.wire.cut()
	p.source.query(t, "SET GLOBAL rpl_semi_sync_source_enabled = OFF")
}

// awaitTrue waits until a query says 1.
func awaitTrue(t *testing.T, s *realServer, question string) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); s.query(t, question) != "1"; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never true: %s", question)
		}
	}
}

// Sets of GTIDs as a server tells them.
const (
	executedSet = "SELECT @@GLOBAL.gtid_executed"
	receivedSet = "SELECT received_transaction_set FROM performance_schema.replication_connection_status"
)

func (s *realServer) set(t *testing.T, question string) gtid.Set {
	t.Helper()
	set, err := gtid.Parse(s.query(t, question))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func (s *realServer) held(t *testing.T) gtid.Set {
	t.Helper()
	return s.set(t, executedSet).Union(s.set(t, receivedSet))
}

// startContained starts the server as a child of the first process of a container, as far as its processes are concerned:
// in a PID namespace, which ends with that process.
func (s *realServer) startContained(t *testing.T, options ...string) *running {
	t.Helper()
	cmd, stderr := s.mysqld(t, slices.Concat(small, options)...)
	server := cmd.Args
	cmd.Path = "/bin/sh"
	cmd.Args = append([]string{"sh", "-c", `"$@" & wait $!`, "sh"}, server...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Setpgid: true}
	return s.run(t, cmd, stderr)
}

// clients write rows of growing numbers through several connections, and know which were acknowledged.
type clients struct {
	db   *sql.DB
	done sync.WaitGroup
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool
	next   int64
	acked  []int64
}

// startClients lets them write: mostly a small row, now and then a transaction of half a megabyte.
func startClients(t *testing.T, s *realServer, connections int, small bool) *clients {
	t.Helper()
	db, err := s.connect()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	w := &clients{db: db, stop: cancel}
	for range connections {
		w.done.Go(func() { w.write(ctx, small) })
	}
	t.Cleanup(w.end)
	return w
}

func (c *clients) write(ctx context.Context, small bool) {
	for ctx.Err() == nil {
		c.mu.Lock()
		c.next++
		id := c.next
		c.mu.Unlock()
		size := 100
		if !small && id%8 == 0 {
			size = 512 << 10
		}
		if _, err := c.db.ExecContext(ctx, "INSERT INTO d.t VALUES (?, REPEAT('x', ?))", id, size); err != nil {
			continue
		}
		c.mu.Lock()
		if !c.closed {
			c.acked = append(c.acked, id)
		}
		c.mu.Unlock()
	}
}

// close ends the ledger: what is answered from now on does not count. It returns what was acknowledged.
func (c *clients) close() []int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return c.acked
}

func (c *clients) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.acked)
}

func (c *clients) end() {
	c.stop()
	c.done.Wait()
	_ = c.db.Close()
}

// wire passes connections on until it is cut.
type wire struct {
	port uint16 // of this machine
	to   string

	mu       sync.Mutex
	listener net.Listener
	open     []net.Conn
}

func (w *wire) plugIn(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", w.port))
	if err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.listener = l
	w.mu.Unlock()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", w.to)
			if err != nil {
				_ = in.Close()
				continue
			}
			w.mu.Lock()
			w.open = append(w.open, in, out)
			w.mu.Unlock()
			go func() { _, _ = io.Copy(out, in) }()
			go func() { _, _ = io.Copy(in, out) }()
		}
	}()
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.listener != nil {
		_ = w.listener.Close()
	}
	for _, c := range w.open {
		_ = c.Close()
	}
	w.listener, w.open = nil, nil
}

// freePort is one that nobody listens on at this moment.
func freePort(t *testing.T) uint16 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return uint16(l.Addr().(*net.TCPAddr).Port)
}
