package mysql

import (
	"context"
	"errors"
	"fmt"

	"cnmsql.co/operator/instance/flavor"
)

// SetReadOnly makes the server refuse writes of everybody, and reads it back. It waits for commits that are
// under way: for a bounded step-down see Demote.
func (s *Server) SetReadOnly(ctx context.Context) error {
	ctx, cancel := step(ctx)
	defer cancel()
	c, err := s.startClosing(ctx)
	if err != nil {
		return err
	}
	defer c.end()
	select {
	case <-c.done:
	case <-ctx.Done():
		return fmt.Errorf("making the server read-only: %w", ctx.Err())
	}
	if c.err != nil {
		return fmt.Errorf("making the server read-only: %w", c.err)
	}
	return s.confirmReadOnly(ctx)
}

// OpenWrites lets clients in and lets them write, and reads it back. Options.MayOpen can forbid it to the last
// moment.
func (s *Server) OpenWrites(ctx context.Context) error {
	s.opening.Lock()
	defer s.opening.Unlock()
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	if s.o.MayOpen != nil {
		if err := s.o.MayOpen(); err != nil {
			return fmt.Errorf("opening for writes: %w", err)
		}
	}
	if err := s.Execute(ctx, flavor.OpenForWrites); err != nil {
		return fmt.Errorf("opening for writes: %w", err)
	}
	ro, sro, err := s.readOnly(ctx)
	if err != nil {
		return fmt.Errorf("opening for writes: %w", err)
	}
	if ro || sro {
		return errors.New("opening for writes: the server is read-only again")
	}
	// Only now: nobody gets a session here that met a read-only server.
	return s.AdmitClients(ctx)
}

// AdmitClients lets clients begin sessions again.
func (s *Server) AdmitClients(ctx context.Context) error {
	return s.short(ctx, "admitting clients", flavor.AdmitClients)
}

// confirmReadOnly is an error unless the server says that it refuses the writes of everybody.
func (s *Server) confirmReadOnly(ctx context.Context) error {
	ro, sro, err := s.readOnly(ctx)
	if err != nil {
		return fmt.Errorf("confirming that the server is read-only: %w", err)
	}
	if !ro || !sro {
		return errors.New("confirming that the server is read-only: it is writable")
	}
	return nil
}

func (s *Server) readOnly(ctx context.Context) (readOnly, superReadOnly bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	err = s.reader.QueryRowContext(ctx, "SELECT @@global.read_only, @@global.super_read_only").Scan(&readOnly, &superReadOnly)
	return readOnly, superReadOnly, err
}
