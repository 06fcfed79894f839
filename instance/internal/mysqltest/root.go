package mysqltest

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"

	"cnmsql.co/operator/instance/mysqld"
)

// RootVariable is the environment variable that names the root filesystem.
const RootVariable = "CNMSQL_MYSQL_ROOT"

// Root is the folder with the server; the test is skipped when there is none.
func Root(t testing.TB) string {
	t.Helper()
	root := os.Getenv(RootVariable)
	if root == "" {
		t.Skipf("no real server: %s is not set (make it with e2e/lab/mysql/rootfs.sh)", RootVariable)
	}
	return root
}

// Reaper is the one of this process.
var Reaper = sync.OnceValue(func() *mysqld.Reaper { return mysqld.NewReaper(logr.Discard()) })

// Command runs a program of the root filesystem, for example usr/sbin/mysqld, without changing the root.
func Command(root, program string, args ...string) mysqld.Command {
	lib := filepath.Join(root, "usr/lib/x86_64-linux-gnu")
	return mysqld.Command{Args: slices.Concat([]string{
		filepath.Join(lib, "ld-linux-x86-64.so.2"), "--library-path", lib, filepath.Join(root, program),
	}, args)}
}

// Mysqld is the server with an option file.
func Mysqld(root, cnf string) mysqld.Command {
	c := Command(root, "usr/sbin/mysqld", "--defaults-file="+cnf,
		"--basedir="+filepath.Join(root, "usr"),
		"--lc-messages-dir="+filepath.Join(root, "usr/share/mysql"),
		"--character-sets-dir="+filepath.Join(root, "usr/share/mysql/charsets"),
		"--plugin-dir="+filepath.Join(root, "usr/lib/mysql/plugin"),
		"--bind-address=127.0.0.1")
	if os.Getuid() == 0 {
		c.Args = append(c.Args, "--user=root")
	}
	return c
}

// Log writes to the test's log when the tests are verbose.
func Log(t testing.TB, name string) logr.Logger {
	if !testing.Verbose() {
		return logr.Discard()
	}
	var mu sync.Mutex
	over := false
	t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
	})
	return funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			t.Log(prefix, args)
		}
	}, funcr.Options{LogTimestamp: true}).WithName(name)
}
