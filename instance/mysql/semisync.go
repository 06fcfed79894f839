package mysql

import (
	"context"
	"fmt"
	"strconv"

	"cnmsql.co/operator/instance/flavor"
)

// SetSemiSync switches the two sides of semi-synchronous replication. waitFor is how many acknowledgements
// the source side waits for; 0 leaves that as it is. A side whose plugin is not loaded can be switched off,
// not on. Where the replica side changes under a running receiver, the receiver is started anew: without
// that the change would have no effect.
func (s *Server) SetSemiSync(ctx context.Context, source, replica bool, waitFor int) error {
	ctx, cancel := step(ctx)
	defer cancel()
	dialect, err := s.dialect(ctx)
	if err != nil {
		return err
	}
	n := dialect.SemiSync
	now, err := s.variables(ctx, n.SourceEnabled, n.ReplicaEnabled, n.WaitForReplicaCount)
	if err != nil {
		return err
	}
	if source && now[n.SourceEnabled] != "ON" {
		// A stamp that is under way is not caught by it.
		leave, err := s.heartbeat.alone(ctx)
		if err != nil {
			return fmt.Errorf("waiting for a stamp to be written: %w", err)
		}
		defer leave()
	}
	if waitFor > 0 {
		// First, so that the source side never waits for a wrong number.
		if _, err := s.change(ctx, now, n.WaitForReplicaCount, strconv.Itoa(waitFor), source); err != nil {
			return err
		}
	}
	if _, err := s.change(ctx, now, n.SourceEnabled, onOff(source), source); err != nil {
		return err
	}
	changed, err := s.change(ctx, now, n.ReplicaEnabled, onOff(replica), replica)
	if err != nil || !changed {
		return err
	}
	return s.restartReceiver(ctx, dialect)
}

// change sets a variable unless it has the value; one that the server does not have matters only when it is needed.
func (s *Server) change(ctx context.Context, now map[string]string, name, value string, needed bool) (bool, error) {
	have, known := now[name]
	switch {
	case have == value:
		return false, nil
	case !known && !needed:
		return false, nil
	case !known:
		return false, fmt.Errorf("setting %s: the server does not have it, the plugin is not loaded", name)
	}
	return true, s.short(ctx, "setting "+name, flavor.SetGlobal(name, value))
}

func (s *Server) restartReceiver(ctx context.Context, dialect flavor.Server) error {
	m, err := s.Read(ctx)
	if err != nil {
		return err
	}
	if m.Replication == nil || !m.Replication.IORunning {
		return nil
	}
	if err := s.StopReplicaIO(ctx); err != nil {
		return err
	}
	if err := s.Execute(ctx, dialect.StartReplica(flavor.Receiver)); err != nil {
		return fmt.Errorf("starting the receiver: %w", err)
	}
	return nil
}

func onOff(b bool) string {
	if b {
		return "ON"
	}
	return "OFF"
}
