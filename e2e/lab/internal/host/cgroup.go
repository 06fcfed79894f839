package host

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"cnmsql.co/operator/e2e/lab/internal/config"
)

const cgroupMount = "/sys/fs/cgroup"

// unified says whether the machine has the one tree of cgroup v2 only.
func unified() bool {
	_, err := os.Stat(cgroupMount + "/cgroup.controllers")
	return err == nil
}

// hierarchies are the roots of all mounted cgroup trees.
func hierarchies() []string {
	if unified() {
		return []string{cgroupMount}
	}
	var out []string
	es, _ := os.ReadDir(cgroupMount)
	for _, e := range es {
		if e.IsDir() {
			out = append(out, filepath.Join(cgroupMount, e.Name()))
		}
	}
	return out
}

// MakeCgroup makes the cgroup name in every hierarchy, with all controllers
// usable in it.
func MakeCgroup(name string) error {
	var errs []error
	for _, root := range hierarchies() {
		p := root
		for part := range strings.SplitSeq(name, "/") {
			parent := p
			p = filepath.Join(p, part)
			if err := os.Mkdir(p, 0o755); err != nil && !os.IsExist(err) {
				errs = append(errs, fmt.Errorf("make a cgroup: %w", err))
				break
			}
			if err := inherit(parent, p); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// inherit makes the parent's resources usable in the child: the cpuset
// hierarchy starts empty, and in the unified one controllers are handed down.
func inherit(parent, child string) error {
	if unified() {
		return delegate(parent)
	}
	if !strings.HasPrefix(child, cgroupMount+"/cpuset/") {
		return nil
	}
	for _, f := range []string{"cpuset.cpus", "cpuset.mems"} {
		b, err := os.ReadFile(filepath.Join(parent, f))
		if err != nil {
			return fmt.Errorf("read the parent's cpuset: %w", err)
		}
		if err := os.WriteFile(filepath.Join(child, f), b, 0o644); err != nil {
			return fmt.Errorf("set up cpuset: %w", err)
		}
	}
	return nil
}

// delegate lets the children of a v2 cgroup use every controller it has.
func delegate(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("read the controllers: %w", err)
	}
	for c := range strings.FieldsSeq(string(b)) {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0o644); err != nil {
			return fmt.Errorf("hand down controller %s: %w", c, err)
		}
	}
	return nil
}

// JoinCgroup moves this process into the cgroup name.
func JoinCgroup(name string) error {
	var errs []error
	for _, root := range hierarchies() {
		errs = append(errs, os.WriteFile(filepath.Join(root, name, "cgroup.procs"), []byte("0"), 0o644))
	}
	return errors.Join(errs...)
}

// Processes are the pids in the lab's cgroup and below it.
func Processes() []int {
	seen := map[int]bool{}
	for _, root := range hierarchies() {
		collect(filepath.Join(root, config.Cgroup), seen)
	}
	return slices.Sorted(maps.Keys(seen))
}

func collect(dir string, seen map[int]bool) {
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return
	}
	for f := range strings.FieldsSeq(string(b)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 1 {
			seen[pid] = true
		}
	}
	es, _ := os.ReadDir(dir)
	for _, e := range es {
		if e.IsDir() {
			collect(filepath.Join(dir, e.Name()), seen)
		}
	}
}

// KillAll ends whatever still runs in the lab's cgroup, for limit at most. Only
// the lab puts processes there.
func KillAll(limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		pids := Processes()
		if len(pids) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes %v of the lab do not end", pids)
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("kill process %d of the lab: %w", pid, err)
			}
		}
	}
}

// RemoveCgroup removes the cgroup name from every hierarchy and tries until
// limit, since processes that were killed leave their cgroup a moment later.
func RemoveCgroup(name string, limit time.Duration) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		left := 0
		for _, root := range hierarchies() {
			left += removeTree(filepath.Join(root, name))
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d directories of cgroup %s are still in use after %v", left, name, limit)
		}
	}
}

// removeTree removes cgroup directories, deepest first, and counts those left.
func removeTree(dir string) (left int) {
	es, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, e := range es {
		if e.IsDir() {
			left += removeTree(filepath.Join(dir, e.Name()))
		}
	}
	if err := syscall.Rmdir(dir); err != nil && !errors.Is(err, syscall.ENOENT) {
		left++
	}
	return left
}
