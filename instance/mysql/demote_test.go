package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"cnmsql.co/operator/instance/internal/mysqltest"
	"cnmsql.co/operator/instance/mysql"
)

var demoteNow = mysql.DemoteOptions{DrainAfter: 0}

// unacknowledged is a writable primary whose commits wait for an acknowledgement that nobody gives.
func unacknowledged(t *testing.T) *mysqltest.Server {
	t.Helper()
	s := mysqltest.Start(t, "alone", mysqltest.Options{})
	must(t, s.SQL.OpenWrites(t.Context()))
	s.Exec(t, "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY, v INT)",
		"CREATE USER client@'%' IDENTIFIED BY 'x'", "GRANT ALL ON app.* TO client@'%'")
	must(t, s.SQL.SetSemiSync(t.Context(), true, false, 1))
	return s
}

// client is one connection of an application.
func client(t *testing.T, s *mysqltest.Server) *sql.Conn {
	t.Helper()
	c, err := s.Client(t, "client", "x").Conn(t.Context())
	must(t, err)
	return c
}

// later runs statements and yields the error of the last one.
func later(c *sql.Conn, statements ...string) <-chan error {
	done := make(chan error, 1)
	go func() {
		var err error
		for _, q := range statements {
			if _, err = c.ExecContext(context.Background(), q); err != nil {
				break
			}
		}
		done <- err
	}()
	return done
}

func TestNoClientIsAnsweredOKWithoutAnAcknowledgement(t *testing.T) {
	g := gomega.NewWithT(t)
	s := unacknowledged(t)
	ctx := t.Context()
	// Only the first of a group waits for the acknowledgement, the others wait for the first.
	committing := func() string {
		return s.Query(t, "SELECT COUNT(*) FROM performance_schema.processlist WHERE INFO IS NOT NULL AND ID <> CONNECTION_ID() AND USER IN ('client', 'cnmsql_control')")
	}

	// A commit in the middle of its wait, one by a transaction of several statements, the manager's own
	// writer among the waiters, a transaction that is open, a lock that a statement waits for.
	waiter := later(client(t, s), "INSERT INTO app.t VALUES (1, 1)")
	long := later(client(t, s), "BEGIN", "INSERT INTO app.t VALUES (2, 1)", "COMMIT")
	stamp := make(chan error, 1)
	go func() { stamp <- s.SQL.Execute(context.Background(), "INSERT INTO app.t VALUES (3, 1)") }()
	g.Eventually(committing).WithTimeout(patience).Should(gomega.Equal("3"))
	g.Eventually(func() int { return read(t, s).SemiSync.Waiting }).WithTimeout(patience).Should(gomega.BeNumerically(">", 0))
	open := client(t, s)
	must(t, <-later(open, "BEGIN", "INSERT INTO app.t VALUES (4, 1)"))
	blocked := later(client(t, s), "INSERT INTO app.t VALUES (4, 2)")
	idle := client(t, s)
	must(t, <-later(idle, "DO 1"))

	// Somebody who keeps coming back.
	var answered atomic.Int64
	stop := make(chan struct{})
	pest := make(chan struct{})
	go func() {
		defer close(pest)
		db := s.Client(t, "client", "x")
		for i := 100; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			if _, err := db.ExecContext(ctx, "INSERT INTO app.t VALUES (?, 1)", i); err == nil {
				answered.Add(1)
			}
			cancel()
		}
	}()

	began := time.Now()
	if err := s.SQL.Demote(ctx, mysql.DemoteOptions{DrainAfter: 200 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	t.Logf("demoted after %v", time.Since(began))
	m := read(t, s)
	if m.Writable() || !m.SuperReadOnly {
		t.Errorf("the server is writable: %+v", m)
	}
	for name, done := range map[string]<-chan error{"the waiting commit": waiter, "the waiting transaction": long, "the blocked statement": blocked} {
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s was answered OK", name)
			}
		case <-time.After(patience):
			t.Errorf("%s was not answered at all", name)
		}
	}
	must(t, <-stamp) // nobody outside hears that
	for name, c := range map[string]*sql.Conn{"the open transaction": open, "the idle client": idle} {
		if _, err := c.ExecContext(ctx, "COMMIT"); err == nil {
			t.Errorf("%s still has its connection", name)
		}
	}
	close(stop)
	<-pest
	if n := answered.Load(); n > 0 {
		t.Errorf("%d writes were answered OK while the server stepped down", n)
	}
	// What was committed without an answer is there: it is the handoff.
	// So may be the blocked statement: the end of the open transaction lets it go, and its own comes a moment later.
	if rows := s.Query(t, "SELECT GROUP_CONCAT(id ORDER BY id) FROM app.t WHERE id < 100"); rows != "1,2,3" && rows != "1,2,3,4" {
		t.Errorf("rows %s", rows)
	}
}

func TestAPrimaryWithoutWorkStepsDownAtOnceAndEndsItsClients(t *testing.T) {
	s := unacknowledged(t)
	idle := client(t, s)
	must(t, <-later(idle, "DO 1"))
	began := time.Now()
	must(t, s.SQL.Demote(t.Context(), mysql.DemoteOptions{DrainAfter: time.Minute}))
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
	if _, err := idle.ExecContext(t.Context(), "DO 1"); err == nil {
		t.Error("the idle client still has its connection")
	}
	if err := s.Client(t, "client", "x").PingContext(t.Context()); err == nil || !strings.Contains(err.Error(), "3032") {
		t.Errorf("a client that comes back meets: %v, want error 3032 (offline mode)", err)
	}
	// The source side stays on when nobody waited: that is for the next step.
	if !read(t, s).SemiSync.SourceEnabled {
		t.Error("semi-sync was switched off for nothing")
	}
	must(t, s.SQL.Demote(t.Context(), demoteNow)) // again
	if !read(t, s).Offline {
		t.Error("clients are let in")
	}
	must(t, s.SQL.AdmitClients(t.Context()))
	must(t, s.Client(t, "client", "x").PingContext(t.Context()))
	must(t, s.SQL.Demote(t.Context(), demoteNow))
	must(t, s.SQL.OpenWrites(t.Context()))
	if read(t, s).Offline {
		t.Error("an opened server refuses clients")
	}
}

func TestTransactionsMayFinishWhileTheDrainLasts(t *testing.T) {
	g := gomega.NewWithT(t)
	s := mysqltest.Start(t, "alone", mysqltest.Options{})
	must(t, s.SQL.OpenWrites(t.Context()))
	s.Exec(t, "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY, v INT)",
		"CREATE USER client@'%' IDENTIFIED BY 'x'", "GRANT ALL ON app.* TO client@'%'")
	slow := later(client(t, s), "INSERT INTO app.t SELECT 1, SLEEP(0.5)")
	g.Eventually(func() string {
		return s.Query(t, "SELECT COUNT(*) FROM performance_schema.processlist WHERE STATE = 'User sleep'")
	}).WithTimeout(patience).Should(gomega.Equal("1"))
	must(t, s.SQL.Demote(t.Context(), mysql.DemoteOptions{DrainAfter: 20 * time.Second}))
	// Its client may be sent away after the commit and before the answer.
	<-slow
	if n := s.Query(t, "SELECT COUNT(*) FROM app.t"); n != "1" {
		t.Errorf("%s rows: the transaction was ended", n)
	}
}

func TestAStepDownThatDoesNotSucceedLeavesNothingBehind(t *testing.T) {
	s := unacknowledged(t)
	ctx := t.Context()
	waiter := later(client(t, s), "INSERT INTO app.t VALUES (7, 1)")
	gomega.NewWithT(t).Eventually(func() int { return read(t, s).SemiSync.Waiting }).WithTimeout(patience).Should(gomega.BeNumerically(">", 0))
	// A session of the manager's own account is not killed, and holds what the statement waits for.
	holder := mysql.Open(mysql.Options{Socket: s.Socket, User: mysqltest.Accounts.Control.User, Password: func() (string, error) {
		return mysqltest.Accounts.Control.Password, nil
	}})
	defer holder.Close()
	held := make(chan error, 1)
	go func() { held <- holder.Execute(context.Background(), "INSERT INTO app.t SELECT 1, SLEEP(6)") }()
	gomega.NewWithT(t).Eventually(func() string {
		return s.Query(t, "SELECT COUNT(*) FROM performance_schema.processlist WHERE STATE = 'User sleep'")
	}).WithTimeout(patience).Should(gomega.Equal("1"))

	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	err := s.SQL.Demote(short, demoteNow)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("demoted: %v", err)
	}
	if n := s.Query(t, "SELECT COUNT(*) FROM performance_schema.processlist WHERE STATE LIKE 'Waiting for%lock'"); n != "0" {
		t.Errorf("%s statements still wait for a lock", n)
	}
	m := read(t, s)
	if m.ReadOnly || m.SuperReadOnly {
		t.Errorf("the failed step-down took effect: %+v", m)
	}
	// It had let the waiting commit go. Those that come wait again.
	if err := <-waiter; err == nil {
		t.Error("the waiting commit was answered OK")
	}
	if !m.SemiSync.SourceEnabled {
		t.Error("commits wait for no acknowledgement any more")
	}
	must(t, s.SQL.SetSemiSync(ctx, false, false, 0))
	if err := <-held; err != nil && !strings.Contains(err.Error(), "killed") {
		t.Log(err)
	}
	if m := read(t, s); m.ReadOnly || m.SuperReadOnly {
		t.Errorf("the failed step-down took effect later: %+v", m)
	}
}

func TestTheStepDownSucceedsWhereClientsUseAllConnections(t *testing.T) {
	s := mysqltest.Start(t, "alone", mysqltest.Options{Parameters: map[string]string{"max_connections": "20"}})
	must(t, s.SQL.OpenWrites(t.Context()))
	s.Exec(t, "CREATE DATABASE app", "CREATE USER client@'%' IDENTIFIED BY 'x'", "GRANT ALL ON app.* TO client@'%'")
	read(t, s)
	db := s.Client(t, "client", "x")
	for refused := false; !refused; {
		_, err := db.Conn(t.Context())
		refused = err != nil
	}
	// The one connection that is kept for administrators is used as well, as soon as the refused one has left it.
	admin := s.DB(t)
	var root *sql.Conn
	gomega.NewWithT(t).Eventually(func() (err error) {
		root, err = admin.Conn(t.Context())
		return err
	}).WithTimeout(patience).Should(gomega.Succeed())
	defer root.Close()
	must(t, s.SQL.Demote(t.Context(), demoteNow))
}
