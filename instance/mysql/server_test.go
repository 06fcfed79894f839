package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"cnmsql.co/operator/instance/internal/mysqltest"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/protocol"
)

const patience = 20 * time.Second

// read is the facts, which must be readable.
func read(t testing.TB, s *mysqltest.Server) *protocol.MySQL {
	t.Helper()
	m, err := s.SQL.Read(t.Context())
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	return m
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestFactsAreReadQuickly(t *testing.T) {
	s := mysqltest.Start(t, "one", mysqltest.Options{})
	read(t, s)
	var took []time.Duration
	for range 50 {
		began := time.Now()
		read(t, s)
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	t.Logf("median %v, worst %v", took[25], took[49])
	if took[25] > 50*time.Millisecond {
		t.Errorf("reading the facts takes %v", took[25])
	}
	for range 200 {
		read(t, s)
	}
	// One read at a time needs one connection of its own, one for all else.
	if n := s.Query(t, "SELECT COUNT(*) FROM performance_schema.processlist WHERE USER = 'cnmsql_control'"); n > "2" {
		t.Errorf("%s connections stay open", n)
	}

	t.Run("a server that hangs is an error in time", func(t *testing.T) {
		defer s.Hang(t)()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := s.SQL.Read(ctx)
		if took := time.Since(began); err == nil || took > 2*time.Second {
			t.Errorf("reading from a hung server: %v after %v", err, took)
		}
	})
	t.Run("settings for sessions do not change what is read", func(t *testing.T) {
		s.Exec(t, "SET GLOBAL sql_mode = 'ANSI_QUOTES,NO_BACKSLASH_ESCAPES,NO_ZERO_DATE,STRICT_ALL_TABLES'", "SET GLOBAL time_zone = '+05:00'")
		other := mysql.Open(mysql.Options{Socket: s.Socket, User: mysqltest.Accounts.Control.User, Password: func() (string, error) {
			return mysqltest.Accounts.Control.Password, nil
		}})
		defer other.Close()
		if _, err := other.Read(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestWritesOpenOnlyWhileTheyMay(t *testing.T) {
	var forbidden error
	s := mysqltest.Start(t, "one", mysqltest.Options{MySQL: mysql.Options{MayOpen: func() error { return forbidden }}})
	forbidden = errors.New("the lease is lost")
	if err := s.SQL.OpenWrites(t.Context()); !errors.Is(err, forbidden) {
		t.Fatalf("opened: %v", err)
	}
	if m := read(t, s); !m.ReadOnly || !m.SuperReadOnly {
		t.Fatalf("writable: %+v", m)
	}
	forbidden = nil
	must(t, s.SQL.OpenWrites(t.Context()))
	must(t, s.SQL.OpenWrites(t.Context()))
	if m := read(t, s); !m.Writable() {
		t.Fatalf("not writable: %+v", m)
	}
	must(t, s.SQL.SetReadOnly(t.Context()))
	must(t, s.SQL.SetReadOnly(t.Context()))
	if m := read(t, s); m.Writable() || !m.SuperReadOnly {
		t.Fatalf("writable: %+v", m)
	}
}

// awkward are passwords that break option files, connection strings, shells and statements.
var awkward = []string{"a#b", "a'b", `a"b`, `a\\b`, `a\`, "a;b", "a b", " a ", "%p@/:?", "é", "日本", "a\tb", "--x", "`a`", "${a}$(b)", strings.Repeat("x", 32)}

func TestAwkwardPasswordsWorkForTheManagerAndForReplication(t *testing.T) {
	g := gomega.NewWithT(t)
	pki := mysqltest.NewPKI(t)
	client := pki.Issue(t, "cnmsql-replication")
	source := mysqltest.Start(t, "source", mysqltest.Options{PKI: pki})
	replica := mysqltest.Start(t, "replica", mysqltest.Options{PKI: pki})
	must(t, source.SQL.OpenWrites(t.Context()))
	for _, password := range awkward {
		quoted := "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(password) + "'"
		source.Exec(t, "SET SESSION sql_mode = ''", fmt.Sprintf("ALTER USER cnmsql_control@localhost IDENTIFIED BY %s", quoted),
			fmt.Sprintf("ALTER USER cnmsql_replication@'%%' IDENTIFIED BY %s", quoted))
		manager := mysql.Open(mysql.Options{Socket: source.Socket, User: "cnmsql_control", Password: func() (string, error) { return password, nil }})
		if err := manager.Ping(t.Context()); err != nil {
			t.Errorf("the manager with password %q: %v", password, err)
		}
		manager.Close()
		to := source.Source(client)
		to.Password = password
		// The last source may still send.
		g.Eventually(func() error { return replica.Follow(t.Context(), to) }).WithTimeout(patience).Should(gomega.Succeed())
		g.Eventually(func() bool { return read(t, replica).Replication.Connected }).WithTimeout(patience).
			Should(gomega.BeTrue(), "replication with password %q", password)
	}
	stranger := source.Source(pki.Issue(t, "stranger"))
	stranger.Password = awkward[len(awkward)-1]
	g.Eventually(func() error { return replica.Follow(t.Context(), stranger) }).WithTimeout(patience).Should(gomega.Succeed())
	g.Eventually(func() int { return read(t, replica).Replication.IOErrno }).WithTimeout(patience).Should(gomega.Equal(1045), "a certificate of somebody else")
	for _, password := range []string{"a\n", "a\x00b", strings.Repeat("x", 33), ""} {
		to := source.Source(client)
		to.Password = password
		err := replica.Follow(t.Context(), to)
		if err == nil || (password != "" && strings.Contains(err.Error(), password)) {
			t.Errorf("replication with password %q: %v", password, err)
		}
	}
}
