package proc

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Identity tells one process from any later one with the same number: the pid
// with the time it started, in clock ticks since boot.
type Identity struct {
	PID   int
	Start string
}

// Identify reads the identity of a running process.
func Identify(pid int) (Identity, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Identity{}, fmt.Errorf("process %d: %w", pid, err)
	}
	_, start, err := parseStat(string(b))
	if err != nil {
		return Identity{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return Identity{PID: pid, Start: start}, nil
}

// ReadIdentity reads what String wrote into a file. A missing file is no
// identity and no error.
func ReadIdentity(path string) (Identity, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return Identity{}, nil
	}
	if err != nil {
		return Identity{}, fmt.Errorf("read a process's identity: %w", err)
	}
	return ParseIdentity(string(b))
}

// ParseIdentity reads what String wrote.
func ParseIdentity(s string) (Identity, error) {
	f := strings.Fields(s)
	if len(f) != 2 {
		return Identity{}, fmt.Errorf("%q is no process identity", s)
	}
	pid, err := strconv.Atoi(f[0])
	if err != nil || pid <= 1 {
		return Identity{}, fmt.Errorf("%q is no process identity", s)
	}
	return Identity{PID: pid, Start: f[1]}, nil
}

func (i Identity) String() string { return fmt.Sprintf("%d %s\n", i.PID, i.Start) }

// Alive says whether this very process still runs. A zombie does not.
func (i Identity) Alive() bool {
	if i.PID <= 1 {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", i.PID))
	if err != nil {
		return false
	}
	st, start, err := parseStat(string(b))
	return err == nil && st != 'Z' && st != 'X' && start == i.Start
}

// End kills this very process and waits until it is gone, for limit at most.
// It does nothing when the process has ended or its number has a new owner.
func (i Identity) End(limit time.Duration) error {
	if !i.Alive() {
		return nil
	}
	if err := syscall.Kill(i.PID, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill process %d: %w", i.PID, err)
	}
	for deadline := time.Now().Add(limit); i.Alive(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d was killed and still runs after %v", i.PID, limit)
		}
	}
	return nil
}

// parseStat takes the state and the start time, field 22, from the text of
// /proc/PID/stat. The second field, the command's name, may hold blanks and
// parentheses.
func parseStat(text string) (status byte, start string, err error) {
	i := strings.LastIndexByte(text, ')')
	f := strings.Fields(text[i+1:])
	if i < 0 || len(f) < 20 {
		return 0, "", fmt.Errorf("unreadable process status %q", text)
	}
	return f[0][0], f[19], nil
}
