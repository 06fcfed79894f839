package mysqltest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cnmsql.co/operator/instance/provision"
)

// FromTemplate gives the server the data of an initialised empty one, with a server_uuid of its own.
func (s *Server) FromTemplate(t testing.TB) {
	t.Helper()
	check(t, copyDir(s.template(t), s.Layout.Data))
	check(t, os.MkdirAll(s.Layout.Binlog, 0o750))
	err := os.Remove(filepath.Join(s.Layout.Data, "auto.cnf"))
	if !errors.Is(err, fs.ErrNotExist) {
		check(t, err)
	}
}

// template is the data directory that all others are copied from. Test processes that run at once make it once.
func (s *Server) template(t testing.TB) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	check(t, err)
	info, err := os.Stat(filepath.Join(s.Root, "usr/sbin/mysqld"))
	check(t, err)
	// The first number is that of what provision.Initialise makes: to be raised when it makes something else.
	key := sha256.Sum256(fmt.Appendf(nil, "3 %s %d %d %+v %v", s.Root, info.Size(), info.ModTime().UnixNano(), Accounts, small))
	dir := filepath.Join(cache, "cnmsql", "mysqltest", fmt.Sprintf("%x", key[:8]))
	check(t, os.MkdirAll(dir, 0o750))
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	check(t, err)
	defer lock.Close()
	check(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	done := filepath.Join(dir, "data")
	if _, err := os.Stat(done); err == nil {
		return done
	}
	check(t, os.MkdirAll(s.Layout.Data, 0o750))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	check(t, provision.Initialise(ctx, s.Reaper, s.Command(), s.Layout.Data, Accounts, Log(t, "template")))
	check(t, os.RemoveAll(done+".new"))
	check(t, copyDir(s.Layout.Data, done+".new"))
	check(t, os.Rename(done+".new", done))
	check(t, os.RemoveAll(s.Layout.Data))
	return done
}

func copyDir(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, path[len(from):])
		if d.IsDir() {
			return os.MkdirAll(target, 0o750)
		}
		return copyFile(path, target)
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
