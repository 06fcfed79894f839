package mycnf_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"cnmsql.co/operator/instance/mycnf"
)

// realServer is mysqld out of an unpacked root file system, run through that file system's own loader.
type realServer struct {
	root, dir string
	in        mycnf.Input
}

// newRealServer skips the test when there is no server to be had. The input is laid out in a folder of its own.
func newRealServer(t *testing.T, changes ...func(*mycnf.Input)) *realServer {
	t.Helper()
	root := os.Getenv("CNMSQL_MYSQL_ROOT")
	if root == "" {
		t.Skip("CNMSQL_MYSQL_ROOT does not name an unpacked MySQL root file system")
	}
	dir, err := os.MkdirTemp("", "mycnf") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &realServer{root: root, dir: dir}
	version, err := s.command("mysqld", "--no-defaults", "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	s.in = healthy(t, string(version), func(in *mycnf.Input) {
		in.DataDir, in.BinlogDir, in.TmpDir = dir+"/data", dir+"/log", dir+"/tmp"
		in.SocketPath, in.PidFile = dir+"/sock", dir+"/pid"
		in.TLS = mycnf.TLS{}
	})
	for _, change := range changes {
		change(&s.in)
	}
	for _, d := range []string{s.in.DataDir, s.in.BinlogDir, s.in.TmpDir} {
		if err := os.MkdirAll(d, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s *realServer) command(program string, args ...string) *exec.Cmd {
	dir := "usr/bin"
	if program == "mysqld" {
		dir = "usr/sbin"
	}
	libraries := filepath.Join(s.root, "usr/lib/x86_64-linux-gnu")
	args = append([]string{"--library-path", libraries, filepath.Join(s.root, dir, program)}, args...)
	return exec.Command(filepath.Join(s.root, "usr/lib64/ld-linux-x86-64.so.2"), args...)
}

// mysqld returns the server with the rendered file and what its unusual place needs.
func (s *realServer) mysqld(t *testing.T, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	file := s.dir + "/my.cnf"
	if err := os.WriteFile(file, []byte(render(t, s.in)), 0o600); err != nil {
		t.Fatal(err)
	}
	share := s.root + "/usr/share/mysql"
	place := []string{
		"--defaults-file=" + file, "--user=root", "--basedir=" + s.root + "/usr", "--lc-messages-dir=" + share, "--character-sets-dir=" + share + "/charsets",
		"--plugin-dir=" + s.root + "/usr/lib/mysql/plugin", "--bind-address=127.0.0.1",
	}
	cmd := s.command("mysqld", append(place, args...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return cmd, &stderr
}

func TestARealServerFindsTheFileValid(t *testing.T) {
	for name, changes := range map[string][]func(*mycnf.Input){"plain": nil, "semi-sync": {semiSync}, "everything": {everything}} {
		s := newRealServer(t, changes...)
		cmd, stderr := s.mysqld(t, "--validate-config")
		err := cmd.Run()
		if complaints := regexp.MustCompile(`(?m)^.*(\[ERROR\]|deprecated|unknown).*$`).FindAllString(stderr.String(), -1); err != nil || len(complaints) > 0 {
			t.Errorf("%s: %v\n%s", name, err, stderr)
		}
	}
}

func TestARealServerReadsValuesAsTheyWereGiven(t *testing.T) {
	values := []string{
		"", "a#b", "a;b", "a b", " a ", "a'b", `a"b`, `a\b`, `\`, `\\`, `"`, `'`, `\"`, `"#"`, `'#'`, `\#`, `a\nb`, `a\sb`, "é", "[client]", "!include /etc/x", "%p@/:?", "=", "a=b",
		"--x", "# x", `"a" 'b' # "c"`, strings.Repeat("x", 3900), `\'\"\`, "$(x) `x` ${x}",
	}
	want := ""
	s := newRealServer(t, func(in *mycnf.Input) {
		in.Parameters = map[string]string{}
		for i, value := range values {
			in.Parameters[fmt.Sprintf("x_%03d", i)] = value
			want += fmt.Sprintf("--x_%03d=%s ", i, value)
		}
	})
	cmd, _ := s.mysqld(t)
	// loader, its two arguments, program and --defaults-file: --print-defaults has to follow that one directly.
	cmd.Args = append(cmd.Args[:5:5], "--print-defaults")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(out), want) {
		t.Errorf("want %s\nin   %s", want, out)
	}
}

// TestRefusedOptionsOfARealServer shows which of the server's own options a user may not set. A look at the golden file
// tells whether one is refused by accident.
func TestRefusedOptionsOfARealServer(t *testing.T) {
	s := newRealServer(t, semiSync)
	if !strings.HasPrefix(s.in.Server.Version.String(), "9.7.") {
		t.Skipf("the golden file is for 9.7, this is %s", s.in.Server.Version)
	}
	cmd, _ := s.mysqld(t, "--verbose", "--help")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(out), "---- ---")
	if !found {
		t.Fatal("no table of options in the help text")
	}
	var got strings.Builder
	for row := range strings.SplitSeq(table, "\n") {
		name, _, _ := strings.Cut(row, " ")
		if regexp.MustCompile(`^[a-z][a-z0-9-]+$`).MatchString(name) && len(mycnf.Target{SemiSync: true}.Check(map[string]string{name: "50"})) > 0 {
			got.WriteString(name + "\n")
		}
	}
	file := "testdata/refused-9.7.txt"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(golden), got.String()); diff != "" {
		t.Errorf("differs from %s (-golden +got):\n%s", file, diff)
	}
}

func TestARealServerStartsReadOnlyWhateverWasPersisted(t *testing.T) {
	s := newRealServer(t, everything, func(in *mycnf.Input) {
		in.MemoryLimitBytes, in.Port = 0, 13799
		delete(in.Parameters, "init_connect")
	})
	s.initialise(t)
	const question = `SELECT CONCAT_WS(' ', @@offline_mode, @@super_read_only, @@read_only, @@skip_replica_start, @@relay_log_recovery, @@gtid_mode, @@server_id, @@report_host, @@replica_net_timeout,
		@@rpl_semi_sync_source_enabled, @@rpl_semi_sync_replica_enabled, @@rpl_semi_sync_source_timeout, @@rpl_semi_sync_source_wait_point, @@sync_relay_log, @@binlog_format,
		@@innodb_io_capacity, @@max_connections, (SELECT COUNT(*) FROM information_schema.plugins
			WHERE plugin_name IN ('clone', 'rpl_semi_sync_source', 'rpl_semi_sync_replica') AND plugin_status = 'ACTIVE'))`
	const want = "1 1 1 1 0 ON 2 c1-2.db.svc 10 0 0 3600000 AFTER_SYNC 1 MIXED 1000 500 3"
	for _, start := range []string{"first", "second"} {
		server := s.start(t)
		if got := s.query(t, question); got != want {
			t.Errorf("%s start:\n got %s\nwant %s", start, got, want)
		}
		s.query(t, "SET PERSIST offline_mode = OFF; SET PERSIST super_read_only = OFF; SET PERSIST read_only = OFF; SET PERSIST rpl_semi_sync_source_enabled = ON")
		server.stop(t)
	}
	if persisted, err := os.ReadFile(s.in.DataDir + "/mysqld-auto.cnf"); err != nil || !bytes.Contains(persisted, []byte("super_read_only")) {
		t.Errorf("nothing was persisted, so the second start shows nothing: %v", err)
	}
}

// running is a server that a test has started. It is killed at the end of the test at the latest.
type running struct {
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	exited chan error
}

// small keeps a server's memory and its start small.
var small = []string{
	"--innodb-redo-log-capacity=32M", "--innodb-buffer-pool-size=64M", "--performance-schema-max-table-instances=400",
	"--performance-schema-max-thread-instances=300", "--performance-schema-events-waits-history-long-size=10",
	"--performance-schema-events-statements-history-long-size=10", "--performance-schema-events-stages-history-long-size=10",
	"--performance-schema-events-transactions-history-long-size=10", "--performance-schema-digests-size=100",
}

// start returns when the server answers. The options win over those in the file.
func (s *realServer) start(t *testing.T, options ...string) *running {
	t.Helper()
	cmd, stderr := s.mysqld(t, slices.Concat(small, options)...)
	return s.run(t, cmd, stderr)
}

// run starts a command that is or contains the server, and returns when the server answers.
func (s *realServer) run(t *testing.T, cmd *exec.Cmd, stderr *bytes.Buffer) *running {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &running{cmd, stderr, make(chan error, 1)}
	go func() {
		r.exited <- cmd.Wait()
		close(r.exited)
	}()
	t.Cleanup(r.kill)
	answers := func() bool { _, err := s.ask(t.Context(), "SELECT 1"); return err == nil }
	for deadline := time.After(3 * time.Minute); !answers(); {
		select {
		case err := <-r.exited:
			t.Fatalf("the server ended: %v\n%s", err, stderr)
		case <-deadline:
			r.kill()
			t.Fatalf("the server does not answer\n%s", stderr)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return r
}

func (r *running) kill() {
	_ = r.cmd.Process.Kill()
	for range r.exited { // until it is closed
	}
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	select {
	case err := <-r.exited:
		if err != nil {
			t.Errorf("the server ended: %v\n%s", err, r.stderr)
		}
	case <-time.After(60 * time.Second):
		t.Error("the server does not stop")
		r.kill()
	}
	if !strings.Contains(r.stderr.String(), "ready for connections") {
		t.Errorf("the error log does not go to standard error:\n%s", r.stderr)
	}
}

// initialise makes an empty server. No plugins are loaded meanwhile, so their options are not known.
func (s *realServer) initialise(t *testing.T) {
	t.Helper()
	cmd, stderr := s.mysqld(t, "--initialize-insecure", "--innodb-redo-log-capacity=32M")
	// It loads no plugins while it initialises, and so does not know their options.
	loose := strings.ReplaceAll(render(t, s.in), "\nrpl_semi_sync_", "\nloose_rpl_semi_sync_")
	if err := os.WriteFile(s.dir+"/my.cnf", []byte(loose), 0o600); err != nil {
		t.Fatal(err)
	}
	if cmd.Run() != nil {
		t.Fatalf("initialising: %s", stderr)
	}
}

// connect returns connections as root. No statement may take longer than minutes.
func (s *realServer) connect() (*sql.DB, error) {
	c := driver.NewConfig()
	c.Net, c.Addr, c.User, c.MultiStatements, c.Logger = "unix", s.in.SocketPath, "root", true, &driver.NopLogger{}
	c.ReadTimeout = 3 * time.Minute // a commit that nobody acknowledges would wait for ever
	connector, err := driver.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", s.in.SocketPath, err)
	}
	return sql.OpenDB(connector), nil
}

// query carries out statements and returns what they answer, a line for each row.
func (s *realServer) query(t *testing.T, statements string) string {
	t.Helper()
	lines, err := s.ask(t.Context(), statements)
	if err != nil {
		t.Fatalf("%s: %v", statements, err)
	}
	return strings.Join(lines, "\n")
}

func (s *realServer) ask(ctx context.Context, statements string) (lines []string, err error) {
	db, err := s.connect()
	if err != nil {
		return nil, err
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, statements)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for more := true; more; more = rows.NextResultSet() {
		columns, err := rows.Columns()
		if err != nil {
			return nil, err
		}
		values, places := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			places[i] = &values[i]
		}
		for rows.Next() {
			if err := rows.Scan(places...); err != nil {
				return nil, err
			}
			var texts []string
			for _, v := range values {
				texts = append(texts, v.String)
			}
			lines = append(lines, strings.Join(texts, "\t"))
		}
	}
	return lines, rows.Err()
}
