// Package pipe joins two connections.
//
// It may import the standard library alone.
package pipe

import (
	"io"
	"net"
)

// Conn is a connection whose one direction can end before the other.
type Conn interface {
	net.Conn
	CloseWrite() error
}

// Join copies both ways until both directions have ended, each on its own: a
// client that has said all it wants may still be listening. What comes from b
// is read from fromB, which may hold what was read ahead.
func Join(a, b Conn, fromB io.Reader) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(a, fromB) // an end, of whatever kind, is passed on
		_ = a.CloseWrite()
	}()
	_, _ = io.Copy(b, a)
	_ = b.CloseWrite()
	<-done
}
