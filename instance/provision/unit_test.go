package provision_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/provision"
)

func TestWhatAVolumeNeeds(t *testing.T) {
	state := func(s provision.Stage) *provision.State {
		return &provision.State{ClusterUID: "c", Instance: "c1-1", Stage: s}
	}
	foreign := func(cluster, instance string) *provision.State {
		return &provision.State{ClusterUID: cluster, Instance: instance, Stage: provision.Initialising}
	}
	for _, c := range []struct {
		name    string
		state   *provision.State
		found   string
		want    string
		refusal string
	}{
		{"an empty volume is filled", nil, "", "make", ""},
		{"data without a state are foreign", nil, "/data/ibdata1", "", provision.ReasonForeignData},
		{"an initialisation that did not end is done again", state(provision.Initialising), "/data/ibdata1", "make", ""},
		{"an initialisation that did not even begin is done", state(provision.Initialising), "", "make", ""},
		{"a clone that did not end is done again", state(provision.Joining), "/data/ibdata1", "make", ""},
		{"complete data are started", state(provision.Complete), "/data/ibdata1", "start", ""},
		{"complete data that are gone are not made up", state(provision.Complete), "", "", provision.ReasonForeignData},
		{"a volume of another Cluster of the same name is refused", foreign("other", "c1-1"), "", "", provision.ReasonForeignVolume},
		{"a volume of another instance is refused", foreign("c", "c1-2"), "/data/ibdata1", "", provision.ReasonForeignVolume},
		{"an unknown state is refused", state("upgrading"), "/data/ibdata1", "", provision.ReasonUnreadableState},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := provision.Decide(c.state, "c", "c1-1", c.found)
			var refusal *provision.Refusal
			if errors.As(err, &refusal) != (c.refusal != "") || (refusal != nil && (refusal.Reason != c.refusal || refusal.Message == "")) {
				t.Fatalf("refusal %+v, %v", refusal, err)
			}
			if err == nil && !strings.HasPrefix(string(got), c.want) {
				t.Errorf("decided %q", got)
			}
		})
	}
}

func TestTheStateIsReadAsItWasWritten(t *testing.T) {
	dir := t.TempDir()
	if s, err := provision.ReadState(dir); s != nil || err != nil {
		t.Fatalf("the state of a new volume: %+v, %v", s, err)
	}
	want := provision.State{ClusterUID: "c", Instance: "c1-1", Stage: provision.Joining, Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	for range 2 {
		if err := provision.WriteState(dir, want); err != nil {
			t.Fatal(err)
		}
	}
	got, err := provision.ReadState(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&want, got); diff != "" {
		t.Error(diff)
	}
	if err := os.WriteFile(filepath.Join(dir, "state.json"), []byte(`{"clusterUID":`), 0o600); err != nil {
		t.Fatal(err)
	}
	var refusal *provision.Refusal
	if _, err := provision.ReadState(dir); !errors.As(err, &refusal) || refusal.Reason != provision.ReasonUnreadableState {
		t.Errorf("a damaged state file: %v", err)
	}
}

func TestLostAndFoundIsNothingAndStays(t *testing.T) {
	dir := t.TempDir()
	l := provision.Layout{Data: filepath.Join(dir, "data"), Binlog: filepath.Join(dir, "log")}
	for _, d := range []string{l.Data, l.Binlog} {
		if err := os.MkdirAll(filepath.Join(d, "lost+found"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if found, err := l.Found(); found != "" || err != nil {
		t.Errorf("found %q, %v", found, err)
	}
	stray := filepath.Join(l.Binlog, "binlog.000001")
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(l.Data, "app"), 0o700); err != nil {
		t.Fatal(err)
	}
	if found, err := l.Found(); found == "" || err != nil {
		t.Errorf("found %q, %v", found, err)
	}
	if err := l.Wipe(); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{l.Data, l.Binlog} {
		entries, err := os.ReadDir(d)
		if err != nil || len(entries) != 1 || entries[0].Name() != "lost+found" {
			t.Errorf("left in %s: %v, %v", d, entries, err)
		}
	}
}

func TestOneManagerHoldsTheVolume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cnmsql")
	never := func() { t.Error("waited for a free volume") }
	first, err := provision.LockVolume(t.Context(), dir, never)
	if err != nil {
		t.Fatal(err)
	}
	waits := make(chan struct{})
	second := make(chan error, 1)
	go func() {
		v, err := provision.LockVolume(context.Background(), dir, func() { close(waits) })
		if err == nil {
			v.Release()
		}
		second <- err
	}()
	<-waits
	first.Release()
	if err := <-second; err != nil {
		t.Error(err)
	}
	third, err := provision.LockVolume(t.Context(), dir, never)
	if err != nil {
		t.Fatal(err)
	}
	defer third.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := provision.LockVolume(ctx, dir, func() {}); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another manager") {
		t.Errorf("a held lock: %v", err)
	}
}

var healthy = provision.Accounts{
	Root:               "root's",
	Control:            provision.Account{User: "cnmsql_control", Password: `c\`},
	Replication:        provision.Account{User: "cnmsql_replication", Password: "r;"},
	ReplicationSubject: "/CN=cnmsql-replication",
}

func TestTheAccountsOfANewServer(t *testing.T) {
	everywhere := healthy
	everywhere.RootEverywhere = true
	want := []string{
		`SET NAMES utf8mb4`,
		`SET SESSION sql_mode = ''`,
		`ALTER USER 'root'@'localhost' IDENTIFIED BY 'root''s'`,
		`CREATE USER 'cnmsql_control'@'localhost' IDENTIFIED BY 'c\\'`,
		`GRANT ALL ON *.* TO 'cnmsql_control'@'localhost' WITH GRANT OPTION`,
		`CREATE USER 'cnmsql_replication'@'%' IDENTIFIED BY 'r;' REQUIRE SUBJECT '/CN=cnmsql-replication'`,
		`GRANT REPLICATION SLAVE, BACKUP_ADMIN, CONNECTION_ADMIN ON *.* TO 'cnmsql_replication'@'%'`,
		`CREATE USER 'root'@'%' IDENTIFIED BY 'root''s'`,
		`GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION`,
	}
	if diff := cmp.Diff(want, everywhere.Statements()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[:7], healthy.Statements()); diff != "" {
		t.Error(diff)
	}
}

func TestPasswordsThatCannotWorkAreNamedAndNotShown(t *testing.T) {
	if err := healthy.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, want string
		spoil      func(*provision.Accounts)
	}{
		{"newline at the end", "root has a line break", func(a *provision.Accounts) { a.Root = "secret\n" }},
		{"zero byte", "cnmsql_control has a line break or a zero byte", func(a *provision.Accounts) { a.Control.Password = "secret\x00" }},
		{"no text", "cnmsql_control is no UTF-8", func(a *provision.Accounts) { a.Control.Password = "secret\xff" }},
		{"empty", "root is empty", func(a *provision.Accounts) { a.Root = "" }},
		{"too long for replication", "cnmsql_replication has more than the 32", func(a *provision.Accounts) { a.Replication.Password = strings.Repeat("secret", 6) }},
		{"nobody", "no name", func(a *provision.Accounts) { a.Replication.User = "" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := healthy
			c.spoil(&a)
			err := a.Validate()
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
				t.Errorf("got %v", err)
			}
		})
	}
	a := healthy
	a.Replication.Password = strings.Repeat("é", 16)
	if err := a.Validate(); err != nil {
		t.Errorf("32 bytes: %v", err)
	}
}

func TestTheContentOfANewDatabaseServer(t *testing.T) {
	d := provision.Database{Name: "my_app`1%", CharacterSet: "utf8mb4", Collation: "utf8mb4_bin", Owner: provision.Account{User: "o'wner", Password: "p"}}
	want := []string{
		"CREATE DATABASE `my_app``1%` CHARACTER SET 'utf8mb4' COLLATE 'utf8mb4_bin'",
		`CREATE USER 'o''wner'@'%' IDENTIFIED BY 'p'`,
		"GRANT ALL ON `my\\_app``1\\%`.* TO 'o''wner'@'%'",
	}
	if diff := cmp.Diff(want, d.Statements(false)); diff != "" {
		t.Error(diff)
	}
	want[2] = "GRANT ALL ON `my_app``1%`.* TO 'o''wner'@'%'"
	if diff := cmp.Diff(want, d.Statements(true)); diff != "" {
		t.Error(diff)
	}
	if got := (provision.Database{}).Statements(false); got != nil {
		t.Errorf("nothing became %q", got)
	}
}

func TestUnknownOptionsAreNoErrorWhileInitialising(t *testing.T) {
	path := filepath.Join(t.TempDir(), "my.cnf")
	text := "# comment\n\n[mysqld]\nport = 1\nloose-x=1\n ; other\n!include x\nskip_name_resolve\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	original := []string{"mysqld", "--defaults-file=" + path, "--user=x"}
	c := mysqld.Command{Args: original}
	forget, err := provision.Loosen(&c)
	if err != nil {
		t.Fatal(err)
	}
	if original[1] != "--defaults-file="+path {
		t.Error("the caller's arguments were changed")
	}
	loose := strings.TrimPrefix(c.Args[1], "--defaults-file=")
	b, err := os.ReadFile(loose)
	if err != nil {
		t.Fatal(err)
	}
	want := "# comment\n\n[mysqld]\nloose_port = 1\nloose-x=1\n ; other\n!include x\nloose_skip_name_resolve\n"
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Error(diff)
	}
	forget()
	if _, err := os.Stat(loose); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy stays: %v", err)
	}
}
