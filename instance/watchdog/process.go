package watchdog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// lookEvery is the longest time between two looks: a deadline that comes nearer is noticed as late.
	lookEvery = 500 * time.Millisecond
	// killRetry is the pause until a server that was killed is looked at again.
	killRetry = 20 * time.Millisecond
)

// Run is the watchdog. It says in out what it does, and returns only when it cannot go on.
func Run(b *Board, out io.Writer) error {
	var shot struct {
		deadline time.Duration
		pid      int
	}
	for {
		b.w.beat.Add(1)
		now, err := bootTime()
		if err != nil {
			return err
		}
		next := now + lookEvery
		at, armed := b.Deadline()
		switch {
		case armed && now < at:
			next = min(next, at)
		case armed:
			pid, start, there := b.process()
			if !there || (at == shot.deadline && pid != shot.pid) {
				break // nothing runs that ran when the deadline passed
			}
			err := kill(pid, start) // before anything is said: nobody may be listening
			if at != shot.deadline {
				say(out, now-at, err)
			}
			shot.deadline, shot.pid = at, pid
			next = now + killRetry
		}
		sleepUntil(next)
	}
}

func say(out io.Writer, late time.Duration, err error) {
	text := "killed the server: its manager did not move the deadline, which passed " + late.String() + " ago"
	if err != nil {
		text = "the server is to be killed and cannot be: " + err.Error()
	}
	_, _ = fmt.Fprintln(out, text)
}

// kill ends exactly the process that was started then.
func kill(pid int, start int64) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	// The descriptor is of one process for good; if this is another than was meant, it is left alone.
	if is, ok := startOf(pid); !ok || is != start {
		return nil
	}
	if err == nil {
		defer func() { _ = unix.Close(fd) }()
		err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
	if err != nil {
		// A sandbox may forbid these two calls. The process was there a moment ago, so the number is still its own.
		err = unix.Kill(pid, unix.SIGKILL)
	}
	if err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("sending a signal to process %d: %w", pid, err)
	}
	return nil
}

// startOf is when a process was started, in the kernel's own units since the machine was.
func startOf(pid int) (int64, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	// The second field, in parentheses, may hold anything; the start is the 22nd, the 20th after it.
	const start = 19
	_, rest, found := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !found || len(fields) <= start {
		return 0, false
	}
	n, err := strconv.ParseInt(fields[start], 10, 64)
	return n, err == nil
}

func bootTime() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, fmt.Errorf("reading the clock: %w", err)
	}
	return time.Duration(t.Nano()), nil
}

// sleepUntil ends at a moment of CLOCK_BOOTTIME, at once when the machine has slept through it.
func sleepUntil(at time.Duration) {
	t := unix.NsecToTimespec(int64(at))
	if err := unix.ClockNanosleep(unix.CLOCK_BOOTTIME, unix.TIMER_ABSTIME, &t, nil); err != nil && !errors.Is(err, unix.EINTR) {
		time.Sleep(killRetry)
	}
}
