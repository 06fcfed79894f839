package mysql

import (
	"context"
	"errors"
	"fmt"

	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/gtid"
)

// Source is a server to follow or to clone from. CA, Cert and Key are paths of files that the server reads.
type Source = flavor.Source

// StopReplicaIO stops the receiver. What it received stays and is applied.
func (s *Server) StopReplicaIO(ctx context.Context) error {
	return s.replica(ctx, "stopping the receiver", func(d flavor.Server) string { return d.StopReplica(flavor.Receiver) })
}

// StopReplica stops receiver and applier.
func (s *Server) StopReplica(ctx context.Context) error {
	return s.replica(ctx, "stopping replication", func(d flavor.Server) string { return d.StopReplica(flavor.BothThreads) })
}

// StartReplica starts receiver and applier.
func (s *Server) StartReplica(ctx context.Context) error {
	return s.replica(ctx, "starting replication", func(d flavor.Server) string { return d.StartReplica(flavor.BothThreads) })
}

// StartReplicaSQL starts the applier only.
func (s *Server) StartReplicaSQL(ctx context.Context) error {
	return s.replica(ctx, "starting the applier", func(d flavor.Server) string { return d.StartReplica(flavor.Applier) })
}

// ResetReplicaAll stops replication and forgets the source and the relay log, what is not applied included.
func (s *Server) ResetReplicaAll(ctx context.Context) error {
	if err := s.StopReplica(ctx); err != nil {
		return err
	}
	return s.replica(ctx, "resetting replication", func(d flavor.Server) string { return d.ResetReplica(true) })
}

// ErrReceivedMore is the error of Follow where the former source has sent something that was not known, or that is
// not applied and would be thrown away. The receiver is stopped then.
var ErrReceivedMore = errors.New("more was received than is applied or known")

// Follow replicates from a source, from where this server is. Where it replicates from another, it first stops
// receiving. It does no more when the server then holds anything that is not in known.
//
// An applier that runs goes on running. To stop it could take a minute: where the former source has sent a part of a
// transaction and is gone, the applier waits that long for the rest.
func (s *Server) Follow(ctx context.Context, source Source, known gtid.Set) error {
	ctx, cancel := step(ctx)
	defer cancel()
	dialect, err := s.dialect(ctx)
	if err != nil {
		return err
	}
	if err := s.StopReplicaIO(ctx); err != nil {
		return err
	}
	m, err := s.Read(ctx)
	if err != nil {
		return err
	}
	applying := m.Replication != nil && m.Replication.SQLRunning
	rest := m.Held().Minus(known)
	if !applying {
		rest = rest.Union(m.Unapplied())
	}
	if !rest.IsEmpty() {
		return fmt.Errorf("leaving the former source: %w: %s", ErrReceivedMore, rest)
	}
	change, err := dialect.ChangeSource(source)
	if applying {
		change, err = dialect.MoveSource(source)
	}
	if err != nil {
		return err
	}
	if err := s.Execute(ctx, change); err != nil {
		return fmt.Errorf("pointing replication at %s: %w", source.Host, err)
	}
	return s.StartReplica(ctx)
}

func (s *Server) replica(ctx context.Context, what string, statement func(flavor.Server) string) error {
	ctx, cancel := step(ctx)
	defer cancel()
	dialect, err := s.dialect(ctx)
	if err != nil {
		return err
	}
	if err := s.Execute(ctx, statement(dialect)); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// ReloadTLS makes the server use the certificate files as they are now. With files that do not work it is an
// error, and the server keeps what it has.
func (s *Server) ReloadTLS(ctx context.Context) error {
	return s.short(ctx, "reloading the certificates", flavor.ReloadTLS)
}
