package mysql

import (
	"context"
	"errors"
	"time"

	"cnmsql.co/operator/instance/protocol"
)

var errNotYet = errors.New("not written yet")

type heartbeats struct{}

// Source is a server to follow or to clone from. CA, Cert and Key are paths of files that the server reads.
type Source struct {
	Host          string
	Port          int
	User          string
	Password      string
	CA, Cert, Key string
}

// DemoteOptions bound the parts of a step-down.
type DemoteOptions struct {
	// DrainAfter is how long client transactions may finish by themselves before their connections are killed.
	DrainAfter time.Duration
}

// Read reads all facts.
func (s *Server) Read(ctx context.Context) (*protocol.MySQL, error) { return nil, errNotYet }

// SetReadOnly makes the server refuse writes, and reads it back.
func (s *Server) SetReadOnly(ctx context.Context) error { return errNotYet }

// Demote makes a writable server read-only.
func (s *Server) Demote(ctx context.Context, o DemoteOptions) error { return errNotYet }

// KillClients ends the sessions of clients and sees them gone.
func (s *Server) KillClients(ctx context.Context) error { return errNotYet }

// StopReplicaIO stops the receiver.
func (s *Server) StopReplicaIO(ctx context.Context) error { return errNotYet }

// StopReplica stops receiver and applier.
func (s *Server) StopReplica(ctx context.Context) error { return errNotYet }

// StartReplica starts receiver and applier.
func (s *Server) StartReplica(ctx context.Context) error { return errNotYet }

// StartReplicaSQL starts the applier only.
func (s *Server) StartReplicaSQL(ctx context.Context) error { return errNotYet }

// ResetReplicaAll stops replication and forgets the source and the relay log.
func (s *Server) ResetReplicaAll(ctx context.Context) error { return errNotYet }

// Follow replicates from a source, from where this server is.
func (s *Server) Follow(ctx context.Context, src Source) error { return errNotYet }

// SetSemiSync switches the sides of semi-synchronous replication; waitFor is the number of
// acknowledgements that the source side waits for, 0 leaves it as it is.
func (s *Server) SetSemiSync(ctx context.Context, source, replica bool, waitFor int) error {
	return errNotYet
}

// OpenWrites lets clients write, and reads it back.
func (s *Server) OpenWrites(ctx context.Context) error { return errNotYet }

// ReloadTLS makes the server use the certificate files as they are now. On an error it keeps those it has.
func (s *Server) ReloadTLS(ctx context.Context) error { return errNotYet }

// Clone replaces all data of this server by those of src.
func (s *Server) Clone(ctx context.Context, src Source) error { return errNotYet }

// CloneProgress is how much of a running clone is copied, 0 to 100; false when none runs.
func (s *Server) CloneProgress(ctx context.Context) (int32, bool, error) { return 0, false, errNotYet }
