package provision

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// lockPoll is how often a lock that another manager holds is tried.
const lockPoll = 250 * time.Millisecond

// lostAndFound belongs to the file system.
const lostAndFound = "lost+found"

// Volume is a locked volume.
type Volume struct{ lock *os.File }

// Release unlocks the volume. The end of the process does so too.
func (v *Volume) Release() { _ = v.lock.Close() }

// lockVolume waits until no other manager holds the volume; held is called once when it has to wait.
func lockVolume(ctx context.Context, dir string, held func()) (*Volume, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("locking the volume: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o640)
	if err != nil {
		return nil, fmt.Errorf("locking the volume: %w", err)
	}
	for first := true; ; first = false {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return &Volume{lock: f}, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = f.Close()
			return nil, fmt.Errorf("locking the volume: %w", err)
		}
		if first {
			held()
		}
		if err := sleep(ctx, lockPoll); err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("locking the volume, which another manager holds: %w", err)
		}
	}
}

// directories are the server's own.
func (l Layout) directories() []string {
	if l.Binlog == "" {
		return []string{l.Data}
	}
	return []string{l.Data, l.Binlog}
}

// found is the path of something in the server's directories, empty when there is nothing.
func (l Layout) found() (string, error) {
	for _, dir := range l.directories() {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("looking into the data directory: %w", err)
		}
		for _, e := range entries {
			if e.Name() != lostAndFound {
				return filepath.Join(dir, e.Name()), nil
			}
		}
	}
	return "", nil
}

// wipe empties the server's directories, and makes them.
func (l Layout) wipe() error {
	for _, dir := range l.directories() {
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return fmt.Errorf("making the data directory: %w", err)
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("emptying the data directory: %w", err)
		}
		for _, e := range entries {
			if e.Name() == lostAndFound {
				continue
			}
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return fmt.Errorf("emptying the data directory: %w", err)
			}
		}
	}
	return nil
}

// flush returns when everything written so far on the volume of a directory is on the disk.
func flush(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("flushing the volume: %w", err)
	}
	defer d.Close()
	if err := unix.Syncfs(int(d.Fd())); err != nil {
		return fmt.Errorf("flushing the volume: %w", err)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
