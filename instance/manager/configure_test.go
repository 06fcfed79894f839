package manager

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
)

func TestASpecificationThatNoServerStartsWithIsToldWhileTheServerRuns(t *testing.T) {
	cluster := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", ResourceVersion: "1"}, Spec: api.ClusterSpec{Instances: 3}}
	cluster.Default()
	server, err := flavor.Detect("8.4.3")
	if err != nil {
		t.Fatal(err)
	}
	c := &configurer{
		Config: Config{Instance: "c-1", Paths: Paths{
			Data: "/data", Binlog: "/none", Run: "/run", Tmp: "/tmp", ServerTLS: "/tls", Replication: "/replication", Credentials: "/credentials",
		}},
		cluster: func() *api.Cluster { return cluster }, server: &server,
	}
	_, wanted, refused := c.hashes()
	if wanted == "" || wanted == protocol.ConfigInvalid || refused != "" {
		t.Fatalf("a valid one: %q, refused: %s", wanted, refused)
	}
	c.started(wanted)
	change := func(version string, parameters map[string]string) {
		cluster = cluster.DeepCopy()
		cluster.ResourceVersion, cluster.Spec.MySQL.Parameters = version, parameters
	}
	change("2", map[string]string{"expire_logs_days": "7"})
	running, invalid, refused := c.hashes()
	if running != wanted || invalid != protocol.ConfigInvalid || !strings.Contains(refused, "expire_logs_days") {
		t.Errorf("running %q, wanted %q, refused: %s", running, invalid, refused)
	}
	change("3", nil)
	if running, again, refused := c.hashes(); running != again || refused != "" {
		t.Errorf("mended: running %q, wanted %q, refused: %s", running, again, refused)
	}
}

// A container that was killed leaves the lock of its server's socket, with a number that is another process's now.
func TestAServerIsStartedWithoutTheSocketLockOfAKilledContainer(t *testing.T) {
	cluster := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", ResourceVersion: "1"}, Spec: api.ClusterSpec{Instances: 1}}
	cluster.Default()
	server, err := flavor.Detect("8.4.3")
	if err != nil {
		t.Fatal(err)
	}
	run := t.TempDir()
	c := &configurer{
		Config: Config{
			Instance: "c-1", Mysqld: func(...string) mysqld.Command { return mysqld.Command{} },
			Paths: Paths{Data: "/data", Binlog: "/none", Run: run, Tmp: "/tmp", ServerTLS: "/tls", Replication: "/replication", Credentials: "/credentials"},
		},
		cluster: func() *api.Cluster { return cluster }, server: &server,
	}
	lock := filepath.Join(run, "mysql.sock.lock")
	if err := os.WriteFile(lock, []byte("1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time there is none
		if _, err := c.prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(lock); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the lock is still there: %v", err)
		}
	}
}
