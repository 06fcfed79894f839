// Package state names the files of the lab's state directory. Everything that
// a running lab writes on disk is under it, and `lab down` removes it whole.
//
// It may import the standard library alone.
package state

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Default is the directory unless LAB_DIR names another. A machine has one lab
// at most, so every checkout finds the same one.
const Default = "/var/tmp/cnmsql-lab"

// maxLen keeps unix sockets in the directory under the kernel's 107 bytes.
const maxLen = 80

// Dir is the absolute path of a state directory.
type Dir string

// Open checks that path can hold a lab's state. It makes nothing.
func Open(path string) (Dir, error) {
	if path == "" {
		path = Default
	}
	p, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the state directory: %w", err)
	}
	if len(p) > maxLen {
		return "", fmt.Errorf("state directory %s: longer than %d bytes, its sockets could not be opened", p, maxLen)
	}
	if strings.ContainsAny(p, " '\"\n@") {
		return "", fmt.Errorf("state directory %s: blanks, quotes and @ are not allowed in it", p)
	}
	for _, hidden := range []string{"/run", "/var/run", "/var/lib", "/var/log", "/proc", "/sys", "/dev"} {
		if p == hidden || strings.HasPrefix(p, hidden+"/") {
			return "", fmt.Errorf("state directory %s: a node mounts its own %s", p, hidden)
		}
	}
	if p == "/" || filepath.Dir(p) == "/" {
		return "", fmt.Errorf("state directory %s: it is removed whole by down, name one of its own", p)
	}
	return Dir(p), nil
}

// Path joins names to the directory.
func (d Dir) Path(names ...string) string {
	return filepath.Join(append([]string{string(d)}, names...)...)
}

// Socket is the unix socket of the lab's control server.
func (d Dir) Socket() string { return d.Path("control.sock") }

// RootID holds the identity of the root process.
func (d Dir) RootID() string { return d.Path("root.pid") }

// ForwarderID holds the identity of the process that listens outside.
func (d Dir) ForwarderID() string { return d.Path("forwarder.pid") }

// Kubeconfig works from outside the lab, through the forwarder.
func (d Dir) Kubeconfig() string { return d.Path("kubeconfig") }

// Sysctls holds the machine's settings as they were before the lab.
func (d Dir) Sysctls() string { return d.Path("sysctls") }

// BinLink names the directory of programs that this lab was started with.
func (d Dir) BinLink() string { return d.Path("bin") }

// ImagesLink names the directory of image archives it was started with.
func (d Dir) ImagesLink() string { return d.Path("images") }

// Loaded holds the archives that `lab load` brought.
func (d Dir) Loaded() string { return d.Path("loaded") }

// PKI is a file among the keys and certificates.
func (d Dir) PKI(name string) string { return d.Path("pki", name) }

// Log is the log file of a process of the control plane.
func (d Dir) Log(name string) string { return d.Path("log", name+".log") }

// Write writes a file and makes the directories above it.
func Write(path string, content []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make the directory of %s: %w", path, err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
