package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"time"
)

// Listener is one HTTP server of the manager.
type Listener struct {
	// Address is host:port to listen on.
	Address string
	Handler http.Handler
	// TLS is nil for a server in the clear.
	TLS *tls.Config
	// Errors takes what goes wrong on single connections.
	Errors *log.Logger
}

// Run listens and serves until ctx ends, then ends all connections.
func (l *Listener) Run(ctx context.Context) error {
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", l.Address)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", l.Address, err)
	}
	return l.Serve(ctx, socket)
}

// Serve serves on a socket that listens already, and closes it.
func (l *Listener) Serve(ctx context.Context, socket net.Listener) error {
	s := &http.Server{
		Handler:           l.Handler,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          l.Errors,
	}
	if l.TLS != nil {
		socket = tls.NewListener(socket, l.TLS)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(socket) }()
	select {
	case err := <-served:
		return fmt.Errorf("serving on %s: %w", l.Address, err)
	case <-ctx.Done():
	}
	_ = s.Close()
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving on %s: %w", l.Address, err)
	}
	return nil
}
