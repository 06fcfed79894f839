package manager

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"cnmsql.co/operator/instance/internal/mysqltest"
	"cnmsql.co/operator/instance/watchdog"
)

// beWatchdog makes this program the watchdog of a manager.
const beWatchdog = "CNMSQL_TEST_WATCHDOG"

// hostsVariable tells a test process that it sees the host names of the instances.
const hostsVariable = "CNMSQL_TEST_HOSTS"

// clusters is for how many Clusters there are host names, for each with that many instances.
const clusters, instances = 50, 3

func namespace(cluster int) string { return fmt.Sprintf("test%d", cluster) }

func address(cluster, instance int) string { return fmt.Sprintf("127.0.%d.%d", cluster, 10+instance) }

// TestMain runs the tests in a mount and a network namespace of their own where that is possible: there the instances
// have host names, by an /etc/hosts that nobody else sees, and ports that nobody else uses.
func TestMain(m *testing.M) {
	if os.Getenv(beWatchdog) != "" {
		board, err := watchdog.OpenBoard(os.NewFile(3, "board"))
		if err == nil {
			err = watchdog.Run(board, os.Stderr)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if os.Getenv(mysqltest.RootVariable) == "" || os.Getuid() != 0 {
		os.Exit(m.Run())
	}
	if os.Getenv(hostsVariable) == "" {
		os.Exit(again())
	}
	if err := errors.Join(mountHosts(), raiseLoopback()); err != nil {
		fmt.Fprintln(os.Stderr, "giving the instances host names and a network:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// inNamespaces skips a test in which instances call one another by their names.
func inNamespaces(t *testing.T) {
	t.Helper()
	if os.Getenv(hostsVariable) == "" {
		t.Skip("instances have host names in namespaces of their own alone, which root can make")
	}
}

// again runs this program once more, in new namespaces.
func again() int {
	c := exec.Command("/proc/self/exe", os.Args[1:]...) //nolint:gosec // this very program
	c.Env = append(os.Environ(), hostsVariable+"=1")
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := c.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "running in namespaces of its own:", err)
		return 1
	}
	return 0
}

// raiseLoopback makes the loopback device of a new network namespace usable.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	device, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	device.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, device)
}

func mountHosts() error {
	dir, err := os.MkdirTemp("", "hosts")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the mount keeps the file
	text := "127.0.0.1 localhost\n"
	for c := range clusters {
		for n := range instances {
			text += fmt.Sprintf("%s c-%d.%s.svc\n", address(c+1, n+1), n+1, namespace(c+1))
		}
	}
	path := filepath.Join(dir, "hosts")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // the server reads it, too
		return err
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	return syscall.Mount(path, "/etc/hosts", "", syscall.MS_BIND, "")
}
