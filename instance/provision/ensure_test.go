package provision_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"cnmsql.co/operator/instance/internal/mysqltest"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/provision"
)

const patience = 60 * time.Second

// steps collects what a provisioning tells.
type steps struct {
	mu   sync.Mutex
	list []protocol.Provision
	done bool
}

func (s *steps) take(p *protocol.Provision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == nil {
		s.done = true
		return
	}
	s.list = append(s.list, *p)
}

// names are the steps without repetitions.
func (s *steps) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, p := range s.list {
		out = append(out, p.Step)
	}
	return slices.Compact(out)
}

func (s *steps) last() protocol.Provision {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 {
		return protocol.Provision{}
	}
	return s.list[len(s.list)-1]
}

// plan is of the first instance of a Cluster.
func plan(t testing.TB, s *mysqltest.Server) (provision.Plan, *steps) {
	told := &steps{}
	return provision.Plan{
		ClusterUID: "cluster", Instance: s.Name, Layout: s.Layout,
		Origin:   func(context.Context) (provision.Origin, error) { return provision.InitDB, nil },
		Accounts: func(context.Context) (provision.Accounts, error) { return mysqltest.Accounts, nil },
		Database: func(context.Context) (provision.Database, error) {
			return provision.Database{Name: "my_app", Owner: provision.Account{User: "owner", Password: `o'w"n\er;é`}}, nil
		},
		Donor:      func(context.Context) (mysql.Source, error) { return mysql.Source{}, errors.New("no donor") },
		Command:    func(context.Context) (mysqld.Command, error) { return s.Command(), nil },
		Reaper:     s.Reaper,
		Supervisor: s.Supervisor, Server: s.SQL,
		Progress:     told.take,
		Log:          mysqltest.Log(t, s.Name),
		FirstBackoff: 50 * time.Millisecond,
	}, told
}

func ensure(t testing.TB, p provision.Plan) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	v, err := provision.Ensure(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(v.Release)
}

func read(t testing.TB, s *mysqltest.Server) *protocol.MySQL {
	t.Helper()
	m, err := s.SQL.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func stage(t testing.TB, s *mysqltest.Server) provision.Stage {
	t.Helper()
	st, err := provision.ReadState(s.Layout.State)
	if err != nil || st == nil {
		t.Fatalf("no state: %v", err)
	}
	return st.Stage
}

// TestTheFirstInstance goes through what can happen to one volume, each part from where the last one left it.
func TestTheFirstInstance(t *testing.T) {
	s := mysqltest.New(t, "c1-1", mysqltest.Options{})
	if err := os.MkdirAll(filepath.Join(s.Layout.Data, "lost+found"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		name string
		test func(*testing.T, *mysqltest.Server)
	}{
		{"an initialisation that is cut short leaves its mark", initialisationCutShort},
		{"and is done again, as is one whose statements fail", initialisedInTheEnd},
		{"the new server has what was asked for", hasWhatWasAskedFor},
		{"a second start leaves the data alone", startedAgain},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.test(t, s) }) {
			return
		}
	}
}

func initialisationCutShort(t *testing.T, s *mysqltest.Server) {
	g := gomega.NewWithT(t)
	p, _ := plan(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := provision.Ensure(ctx, p)
		done <- err
	}()
	g.Eventually(filepath.Join(s.Layout.Data, "mysql.ibd")).WithTimeout(patience).Should(gomega.BeAnExistingFile())
	cancel()
	g.Expect(<-done).To(gomega.MatchError(context.Canceled))
	g.Expect(stage(t, s)).To(gomega.Equal(provision.Initialising))
	g.Expect(os.WriteFile(filepath.Join(s.Layout.Binlog, "binlog.000001"), []byte("rest"), 0o600)).To(gomega.Succeed())
}

var ownerPassword = `o'w"n\er;é`

func initialisedInTheEnd(t *testing.T, s *mysqltest.Server) {
	g := gomega.NewWithT(t)
	p, told := plan(t, s)
	content := provision.Database{
		Name: "my_app", CharacterSet: "utf8mb4", Collation: "utf8mb4_bin",
		Owner: provision.Account{User: "owner", Password: ownerPassword},
	}
	tries := 0
	p.Database = func(context.Context) (provision.Database, error) {
		tries++
		second := `INSERT INTO my_app.t VALUES (1, CURRENT_USER()), (2, "quotes;")`
		if tries == 1 {
			second = "CREATE GARBAGE 'secret'"
		}
		content.PostInitSQL = []string{"CREATE TABLE my_app.t (id INT PRIMARY KEY, who VARCHAR(99))", second}
		return content, nil
	}
	began := time.Now()
	v, err := provision.Ensure(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	v.Release()
	t.Logf("two initialisations took %v", time.Since(began))
	last := told.last()
	g.Expect(last.LastError).To(gomega.ContainSubstring("spec.bootstrap.initdb.postInitSQL[1]"))
	g.Expect(last.LastError).NotTo(gomega.ContainSubstring("secret"))
	g.Expect(last.Attempts).To(gomega.BeEquivalentTo(1))
	g.Expect(tries).To(gomega.Equal(2))
	g.Expect(told.done).To(gomega.BeTrue())
	g.Expect(stage(t, s)).To(gomega.Equal(provision.Complete))
	g.Expect(filepath.Glob(filepath.Join(s.Dir, "*.initialise"))).To(gomega.BeEmpty())
}

func hasWhatWasAskedFor(t *testing.T, s *mysqltest.Server) {
	m := read(t, s)
	if m.Writable() || !m.SuperReadOnly {
		t.Error("the new server is writable")
	}
	// The database, its owner, the right and two statements; none of the accounts every server has.
	if n := m.Executed.Count(); n != 5 || !m.Executed.Equal(m.Executed.BySource(m.ServerUUID)) {
		t.Errorf("executed %s", m.Executed)
	}
	for query, want := range map[string]string{
		"SELECT GROUP_CONCAT(who ORDER BY id) FROM my_app.t":                                             "root@localhost,quotes;",
		"SELECT DEFAULT_COLLATION_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = 'my_app'":    "utf8mb4_bin",
		"SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE '%lost%'":               "0",
		"SELECT COUNT(*) FROM mysql.user WHERE user = 'root'":                                            "1",
		"SELECT COUNT(*) FROM mysql.user WHERE authentication_string = '' AND account_locked = 'N'":      "0",
		"SELECT CONVERT(x509_subject USING utf8mb4) FROM mysql.user WHERE user = 'cnmsql_replication'":   mysqltest.ReplicationSubject,
		"SELECT db FROM mysql.db WHERE user = 'owner'":                                                   `my\_app`,
		"SELECT COUNT(*) > 100 FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'performance_schema'": "1",
		"SELECT @@performance_schema": "1",
		"SELECT @@innodb_flush_method <> 'nosync' AND @@innodb_doublewrite = 'ON'": "1",
	} {
		if got := s.Query(t, query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	owner := s.Client(t, "owner", ownerPassword)
	if err := owner.PingContext(t.Context()); err == nil || !m.Offline {
		t.Errorf("a server that has no role yet lets clients in: %v", err)
	}
	if err := s.SQL.AdmitClients(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := owner.ExecContext(t.Context(), "SELECT * FROM my_app.t"); err != nil {
		t.Errorf("the owner: %v", err)
	}
}

func startedAgain(t *testing.T, s *mysqltest.Server) {
	before := read(t, s)
	if err := s.Supervisor.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	p, told := plan(t, s)
	p.Origin = func(context.Context) (provision.Origin, error) {
		t.Error("asked where complete data come from")
		return "", nil
	}
	ensure(t, p)
	s.Run(t)
	if after := read(t, s); !after.Executed.Equal(before.Executed) || after.ServerUUID != before.ServerUUID {
		t.Errorf("executed %s, then %s", before.Executed, after.Executed)
	}
	if !told.done || len(told.names()) > 0 {
		t.Errorf("told %v", told.names())
	}
}

func TestForeignDataAreRefusedAndNotTouched(t *testing.T) {
	s := mysqltest.New(t, "c1-1", mysqltest.Options{})
	file := filepath.Join(s.Layout.Data, "precious")
	if err := errors.Join(os.MkdirAll(s.Layout.Data, 0o700), os.WriteFile(file, []byte("data"), 0o600)); err != nil {
		t.Fatal(err)
	}
	p, told := plan(t, s)
	for _, state := range []*provision.State{
		nil,
		{ClusterUID: "another", Instance: "c1-1", Stage: provision.Initialising},
		{ClusterUID: "cluster", Instance: "c1-2", Stage: provision.Complete},
	} {
		if state != nil {
			if err := provision.WriteState(s.Layout.State, *state); err != nil {
				t.Fatal(err)
			}
		}
		_, err := provision.Ensure(t.Context(), p)
		var refusal *provision.Refusal
		if !errors.As(err, &refusal) || told.last().LastError != refusal.Message {
			t.Errorf("%+v: %v, told %+v", state, err, told.last())
		}
		if b, err := os.ReadFile(file); err != nil || string(b) != "data" {
			t.Errorf("%+v: the data are %q, %v", state, b, err)
		}
	}
}

func TestAJoinerIsACloneOfThePrimary(t *testing.T) {
	g := gomega.NewWithT(t)
	pki := mysqltest.NewPKI(t)
	primary := mysqltest.Start(t, "c1-1", mysqltest.Options{PKI: pki})
	if err := primary.SQL.OpenWrites(t.Context()); err != nil {
		t.Fatal(err)
	}
	primary.Exec(t, "CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY)", "INSERT INTO app.t VALUES (1), (2)")
	donor := primary.Source(pki.Issue(t, "cnmsql-replication"))

	s := mysqltest.New(t, "c1-2", mysqltest.Options{PKI: pki})
	p, told := plan(t, s)
	p.Origin = func(context.Context) (provision.Origin, error) { return provision.Join, nil }
	wrong := donor
	wrong.Password = "wrong"
	asked, commands := 0, 0
	p.Donor = func(context.Context) (mysql.Source, error) {
		if asked++; asked == 2 { // the first one is cut short
			return wrong, nil
		}
		return donor, nil
	}
	p.Command = func(context.Context) (mysqld.Command, error) {
		commands++
		return s.Command(), nil
	}

	p.Progress = told.take
	before := cutShort(t, p)

	began := time.Now()
	ensure(t, p)
	t.Logf("joined after %v, by way of %v", time.Since(began), told.names())
	if asked != 3 || commands != 2 {
		t.Errorf("%d donors, %d initialisations: a refused login needs no new server", asked, commands)
	}
	clone, donated := read(t, s), read(t, primary)
	if !clone.Executed.Equal(donated.Executed) || clone.ServerUUID == donated.ServerUUID || clone.Writable() {
		t.Errorf("the clone: %+v\nthe primary: %+v", clone, donated)
	}
	if clone.ServerUUID == before {
		t.Errorf("made anew it is the same server as before, %s", before)
	}
	if stage(t, s) != provision.Complete || !slices.Contains(told.names(), "cloning") || !told.done {
		t.Errorf("the volume is %s, told %v", stage(t, s), told.names())
	}
	if st := s.Supervisor.State(); st.Restarts != 0 {
		t.Errorf("the restart of the clone counts as a failure: %+v", st)
	}
	primary.Exec(t, "INSERT INTO app.t VALUES (3)")
	if err := s.Follow(t.Context(), donor); err != nil {
		t.Fatal(err)
	}
	want := read(t, primary).Executed
	g.Eventually(func() bool { return read(t, s).Executed.Contains(want) }).WithTimeout(patience).Should(gomega.BeTrue())
}

// cutShort ends a provisioning in the middle of its clone and returns the server's uuid.
func cutShort(t *testing.T, p provision.Plan) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	tell := p.Progress
	p.Progress = func(w *protocol.Provision) {
		tell(w)
		if w != nil && w.Step == "cloning" && w.Attempts == 0 {
			time.AfterFunc(300*time.Millisecond, cancel)
		}
	}
	if _, err := provision.Ensure(ctx, p); !errors.Is(err, context.Canceled) {
		t.Fatalf("cut short: %v", err)
	}
	if st := p.Supervisor.State(); st.Pid != 0 {
		t.Errorf("a server is left behind: %+v", st)
	}
	st, err := provision.ReadState(p.Layout.State)
	if err != nil || st.Stage != provision.Joining {
		t.Errorf("the volume is %+v, %v", st, err)
	}
	uuid, err := os.ReadFile(filepath.Join(p.Layout.Data, "auto.cnf"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(uuid), "server-uuid=")
	return strings.TrimSpace(text)
}

func TestACloneThatStandsStillIsBegunAnew(t *testing.T) {
	pki := mysqltest.NewPKI(t)
	primary := mysqltest.Start(t, "c1-1", mysqltest.Options{PKI: pki})
	donor := primary.Source(pki.Issue(t, "cnmsql-replication"))
	s := mysqltest.New(t, "c1-2", mysqltest.Options{PKI: pki})
	p, told := plan(t, s)
	p.Origin = func(context.Context) (provision.Origin, error) { return provision.Join, nil }
	p.Donor = func(context.Context) (mysql.Source, error) { return donor, nil }
	p.Standstill = 4 * time.Second
	resume, said := primary.Hang(t), ""
	p.Progress = func(w *protocol.Provision) {
		told.take(w)
		if w != nil && w.Attempts == 1 && said == "" {
			said = w.LastError
			resume()
		}
	}
	ensure(t, p)
	if !strings.Contains(said, "it has stood still at 0 percent for 4s") {
		t.Errorf("told %q", said)
	}
	if n := told.last().Attempts; n != 1 {
		t.Errorf("%d attempts: the next one is made on a server that hangs in no clone", n)
	}
	if clone, donated := read(t, s), read(t, primary); !clone.Executed.Equal(donated.Executed) {
		t.Errorf("the clone: %+v\nthe primary: %+v", clone, donated)
	}
}
