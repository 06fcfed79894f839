package agent

import (
	"time"

	"golang.org/x/sys/unix"
)

// Clock tells how much time has passed since a moment of its own choice. It never goes back.
type Clock interface {
	Now() time.Duration
}

// BootClock is CLOCK_BOOTTIME: it goes on while the machine is suspended, and no setting of the date moves it.
type BootClock struct{}

// Now is the time since the machine was started.
func (BootClock) Now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		// The call fails for an unknown clock only, which every supported kernel has.
		panic("reading CLOCK_BOOTTIME: " + err.Error())
	}
	return time.Duration(t.Nano())
}
