package manager

import (
	"context"
	"database/sql"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// client is an application's connections to an instance.
func (m *member) client() *sql.DB {
	m.c.t.Helper()
	o := driver.NewConfig()
	o.Net, o.Addr, o.User, o.Passwd, o.DBName = "tcp", net.JoinHostPort(m.Listen, "3306"), "app", "app-secret", "app"
	o.TLSConfig, o.Logger = "skip-verify", &driver.NopLogger{}
	connector, err := driver.NewConnector(o)
	m.c.must(err)
	db := sql.OpenDB(connector)
	m.c.t.Cleanup(func() { _ = db.Close() })
	return db
}

// The only replica that acknowledges loses its data while an application writes. The commit that waits for it would keep it
// from being cloned, until the server gives up on acknowledgements after spec.mysql.semiSync.timeoutMillis.
func TestTheOnlyAcknowledgingReplicaIsClonedAnewWhileCommitsWait(t *testing.T) {
	inNamespaces(t)
	t.Parallel()
	c := newCluster(t, true)
	one := c.bootstrap()
	c.api.Change(func(o *api.Cluster) { o.Status.InstanceNames = []string{"c-1", "c-2"} })
	two := c.start(2)
	two.await("a replica", 120*time.Second, acknowledging("c-1"))
	app := one.client()
	for _, statement := range []string{"CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"} {
		if _, err := app.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	two.stop()
	c.must(os.RemoveAll(filepath.Join(c.dir, "c-2", "data")))
	told := make(chan error, 1)
	go func() {
		_, err := app.ExecContext(context.WithoutCancel(t.Context()), "INSERT INTO t VALUES (2)")
		told <- err
	}()
	one.await("waiting for an acknowledgement", 30*time.Second, func(r protocol.Report) bool { return r.MySQL != nil && r.MySQL.SemiSync.Waiting > 0 })
	two = c.start(2)
	two.await("cloning, and not getting on", 90*time.Second, func(r protocol.Report) bool { return r.Provision != nil && r.Provision.Stalled })
	select {
	case err := <-told:
		t.Fatalf("the commit was answered before anybody let it go: %v", err)
	default:
	}
	asked := time.Now()
	c.must(one.loop.SetSemiSync(t.Context(), protocol.SemiSyncSettings{WaitFor: 1, Generation: 1, LetGo: true}))
	select {
	case err := <-told:
		if err == nil {
			t.Error("the client was told that its commit succeeded, and nobody had acknowledged it")
		}
	case <-time.After(time.Minute):
		t.Fatal("the client still waits")
	}
	two.await("a replica again", 120*time.Second, func(r protocol.Report) bool {
		if r.Provision != nil && r.Provision.Attempts > 1 {
			t.Fatalf("the clone has failed: %+v", r.Provision)
		}
		return acknowledging("c-1")(r)
	})
	t.Logf("cloned %s after the commit was let go", time.Since(asked).Round(time.Millisecond))
	one.await("open", 10*time.Second, waitingForAcknowledgements)
	if n := one.loop.Reasserts(); n != 0 {
		t.Errorf("opened %d times as one that somebody else had closed", n)
	}
	if _, err := app.ExecContext(t.Context(), "INSERT INTO t VALUES (3)"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	var n int
	c.must(app.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n))
	if n != 3 {
		t.Errorf("%d rows, want 3: what was let go is kept", n)
	}
}
