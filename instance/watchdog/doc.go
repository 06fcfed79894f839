// Package watchdog is the dead man's switch of an instance: a small process beside the server that kills it when
// its manager has let a deadline pass, because it hangs, was stopped, or slept with the whole machine.
//
// Manager and watchdog share one page of memory, the Board. The manager writes the deadline, by the clock that
// goes on while the machine is suspended (CLOCK_BOOTTIME), and which process the server is. The watchdog writes
// that it lives. Neither ever waits for the other.
//
// What must stay true:
//
//   - The watchdog does nothing but look at the Board, and needs nothing but that and the right to send a signal.
//   - A deadline that passes kills the server that ran then, and no other: not one that was started later, which
//     is read-only until a living manager opens it, and no stranger that got its process id.
//   - A manager whose watchdog has ended or stands still starts another, and does not keep a server writable
//     without one (Guard.Trusted).
//   - The watchdog ends with its manager: the kernel kills both it and the server then.
//
// The package imports instance/mysqld, which starts all processes, and the standard library.
package watchdog
