// Package proc starts, supervises and identifies processes.
//
// Reaper is for a process that is PID 1 of a PID namespace: it owns every
// wait, so nothing else in such a process may wait for a child; os/exec would
// race with it. Identity is for everybody: no process is ever signalled by a
// number alone, since numbers are used again.
//
// It may import the standard library alone.
package proc
