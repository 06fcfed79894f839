package inside

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

type mount struct {
	source, target, kind string
	flags                uintptr
	data                 string
}

const safe = syscall.MS_NOSUID | syscall.MS_NODEV

// freshMounts gives this mount namespace its own /proc, /run and /sys. The new
// /sys hides the machine's cgroup trees, so they are moved into it.
func freshMounts() error {
	return mountAll(
		mount{target: "/", flags: syscall.MS_REC | syscall.MS_PRIVATE},
		mount{"proc", "/proc", "proc", safe | syscall.MS_NOEXEC, ""},
		mount{"tmpfs", "/run", "tmpfs", safe, "mode=755"},
		mount{source: "/sys/fs/cgroup", target: "/run/cgroup", flags: syscall.MS_BIND | syscall.MS_REC},
		mount{"sysfs", "/sys", "sysfs", safe | syscall.MS_NOEXEC, ""},
		mount{source: "/run/cgroup", target: "/sys/fs/cgroup", flags: syscall.MS_MOVE},
	)
}

// nodeMounts gives a node its own state at the usual paths. What must outlive
// the node's crash is in its directory; the rest is in memory.
func nodeMounts(dir string) error {
	ms := []mount{
		{"tmpfs", "/var/lib", "tmpfs", safe, "mode=755"},
		{"tmpfs", "/var/log", "tmpfs", safe, "mode=755"},
	}
	for _, kept := range []string{"/var/lib/kubelet", "/var/lib/containerd", "/var/lib/local-path", "/var/log/pods"} {
		src := filepath.Join(dir, filepath.Base(kept))
		if err := os.MkdirAll(src, 0o755); err != nil {
			return fmt.Errorf("make the node's directory: %w", err)
		}
		ms = append(ms, mount{source: src, target: kept, flags: syscall.MS_BIND})
	}
	if err := mountVolumes(dir); err != nil {
		return err
	}
	// Volumes mounted by the kubelet must show up in containers.
	ms = append(ms, mount{target: "/", flags: syscall.MS_REC | syscall.MS_SHARED})
	if err := mountAll(ms...); err != nil {
		return err
	}
	return errors.Join(os.MkdirAll("/var/log/containers", 0o755), os.MkdirAll("/run/netns", 0o755))
}

// mountVolumes puts the file system of limited size, if there is one, where the volumes will be. It is gone with
// the node's mount namespace; the file stays. Nothing waits until this machine's disk has what is written: a node's
// death leaves the kernel alive, and through a loop device each such wait takes seven times as long.
func mountVolumes(dir string) error {
	image, at := filepath.Join(dir, VolumesImage), filepath.Join(dir, "local-path")
	if _, err := os.Stat(image); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if out, err := exec.Command("mount", "-o", "loop,nosuid,nodev,noatime,barrier=0", image, at).CombinedOutput(); err != nil { //nolint:noctx // nothing runs yet that could end it
		return fmt.Errorf("mount the file system for volumes: %w: %s", err, out)
	}
	// Like local-path's own directory: every pod's user makes its files in here.
	return os.Chmod(at, 0o755)
}

func mountAll(ms ...mount) error {
	for _, m := range ms {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return fmt.Errorf("make mount point: %w", err)
		}
		if err := syscall.Mount(m.source, m.target, m.kind, m.flags, m.data); err != nil {
			return fmt.Errorf("mount %s on %s: %w", m.source, m.target, err)
		}
	}
	return nil
}
