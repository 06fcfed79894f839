package build

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// partial begins the name of a directory that is being filled.
const partial = ".partial-"

// cache is a directory of finished results by kind and key.
type cache struct{ dir string }

// lock takes the cache for this process alone, waiting for another build, and
// clears what killed builds left. The lock ends with the process at the latest.
func (c cache) lock(say func(string, ...any)) (unlock func(), err error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(c.dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the cache: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		say("another build is running; waiting for it")
		if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
			f.Close()
			return nil, fmt.Errorf("lock the cache: %w", err)
		}
	}
	old, _ := filepath.Glob(filepath.Join(c.dir, "*", partial+"*"))
	older, _ := filepath.Glob(filepath.Join(c.dir, "*", "*", partial+"*"))
	for _, d := range append(old, older...) {
		if err := os.RemoveAll(d); err != nil {
			f.Close()
			return nil, fmt.Errorf("clear a build that was cut short: %w", err)
		}
	}
	return func() { f.Close() }, nil
}

// path is where the result of kind with this key is or will be.
func (c cache) path(kind, key string) string { return filepath.Join(c.dir, kind, key) }

func (c cache) has(kind, key string) bool {
	_, err := os.Stat(c.path(kind, key))
	return err == nil
}

// put calls fill with an empty directory and gives it its name when fill has
// succeeded. A result of the same name is replaced.
func (c cache) put(kind, key string, fill func(dir string) error) (err error) {
	if err := os.MkdirAll(filepath.Join(c.dir, kind), 0o755); err != nil {
		return fmt.Errorf("make the cache: %w", err)
	}
	tmp, err := os.MkdirTemp(filepath.Join(c.dir, kind), partial)
	if err != nil {
		return fmt.Errorf("make the cache: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	full := filepath.Join(tmp, "result")
	if err := os.Mkdir(full, 0o755); err != nil {
		return fmt.Errorf("make the cache: %w", err)
	}
	if err := fill(full); err != nil {
		return err
	}
	if c.has(kind, key) { // the old one goes with tmp
		if err := os.Rename(c.path(kind, key), filepath.Join(tmp, "old")); err != nil {
			return fmt.Errorf("replace a result: %w", err)
		}
	}
	if err := os.Rename(full, c.path(kind, key)); err != nil {
		return fmt.Errorf("keep a result: %w", err)
	}
	return nil
}

// prune removes every result but those at the paths in keep. A lab that runs
// from another result loses its programs, so this is never done unasked.
func (c cache) prune(keep []string, say func(string, ...any)) error {
	for _, kind := range []string{"lab", "mysql", "parts/*"} {
		all, err := filepath.Glob(filepath.Join(c.dir, kind, "*"))
		if err != nil {
			return fmt.Errorf("list the cache: %w", err)
		}
		for _, p := range all {
			if slices.Contains(keep, p) {
				continue
			}
			if err := os.RemoveAll(p); err != nil {
				return fmt.Errorf("prune the cache: %w", err)
			}
			say("removed %s", p)
		}
	}
	return nil
}
