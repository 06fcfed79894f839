package watchdog

import (
	"fmt"
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// boardSize is one page.
const boardSize = 4096

// words is what stands on the Board.
type words struct {
	deadline atomic.Int64 // nanoseconds of CLOCK_BOOTTIME; 0 when there is none
	pid      atomic.Int64 // of the server; 0 when there is none
	start    atomic.Int64 // when that process was started, as the kernel tells it
	beat     atomic.Int64 // counts the watchdog's looks
}

// Board is the memory that a manager shares with its watchdog.
type Board struct {
	file *os.File
	w    *words
}

// NewBoard makes one that a process can be given; see Board.File.
func NewBoard() (*Board, error) {
	fd, err := unix.MemfdCreate("cnmsql-watchdog", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("making the watchdog's memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), "watchdog")
	if err := f.Truncate(boardSize); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("making the watchdog's memory: %w", err)
	}
	return OpenBoard(f)
}

// OpenBoard is the Board of another process, which has given this one its file. It stays mapped until the
// process ends.
func OpenBoard(f *os.File) (*Board, error) {
	memory, err := unix.Mmap(int(f.Fd()), 0, boardSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping the watchdog's memory: %w", err)
	}
	return &Board{file: f, w: (*words)(unsafe.Pointer(&memory[0]))}, nil
}

// File is to be given to the watchdog.
func (b *Board) File() *os.File { return b.file }

// Arm sets the deadline.
func (b *Board) Arm(at time.Duration) { b.w.deadline.Store(int64(max(at, 1))) }

// Disarm takes it away.
func (b *Board) Disarm() { b.w.deadline.Store(0) }

// Deadline is the moment at which the server is killed; false when there is none.
func (b *Board) Deadline() (time.Duration, bool) {
	at := b.w.deadline.Load()
	return time.Duration(at), at != 0
}

// SetServer names the process that is the server, 0 for none. One that has ended already counts as none.
func (b *Board) SetServer(pid int) {
	b.w.pid.Store(0)
	if pid == 0 {
		return
	}
	if start, ok := startOf(pid); ok {
		b.w.start.Store(start)
		b.w.pid.Store(int64(pid))
	}
}

// Server is the process that is the server; 0 when there is none.
func (b *Board) Server() int { return int(b.w.pid.Load()) }

// process is the server with the time of its start; false while that is being changed or when there is none.
func (b *Board) process() (pid int, start int64, ok bool) {
	p := b.w.pid.Load()
	start = b.w.start.Load()
	return int(p), start, p != 0 && b.w.pid.Load() == p
}

func (b *Board) beats() int64 { return b.w.beat.Load() }
