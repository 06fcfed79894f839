package agent

import (
	"context"
	"fmt"
	"time"

	"cnmsql.co/operator/instance/protocol"
)

// letGoLasts is how long the wish that commits be let go stands.
const letGoLasts = 10 * time.Second

// SetSemiSync changes how many acknowledgements a writable primary waits for, between two steps of the role. When it is
// asked to let commits go, that is a step of the role to come.
func (l *Loop) SetSemiSync(ctx context.Context, want protocol.SemiSyncSettings) error {
	if want.WaitFor < 1 {
		return fmt.Errorf("%w: waitFor must be at least 1", ErrRefused)
	}
	if err := l.step.enter(ctx); err != nil {
		return fmt.Errorf("waiting for the present step to end: %w", err)
	}
	defer l.step.leave()
	m := l.o.Watcher.Cluster()
	switch {
	case m == nil || m.Status.CurrentPrimary != l.o.Name:
		return fmt.Errorf("%w: %s is not the primary", ErrRefused, l.o.Name)
	case m.Status.CurrentPrimaryGeneration != want.Generation:
		return fmt.Errorf("%w: this is generation %d, not %d", ErrRefused, m.Status.CurrentPrimaryGeneration, want.Generation)
	case !m.SemiSyncEnabled():
		return fmt.Errorf("%w: semi-synchronous replication is not configured", ErrRefused)
	case !l.o.Instance.Running():
		return fmt.Errorf("%w: the server is not running", ErrRefused)
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	facts, err := l.o.Server.Read(ctx)
	if err != nil {
		return err
	}
	if !facts.Writable() {
		return fmt.Errorf("%w: the server is not writable", ErrRefused)
	}
	if err := l.o.Server.SetSemiSync(ctx, true, false, want.WaitFor); err != nil || !want.LetGo {
		return err
	}
	l.letGo.Store(int64(l.o.Clock.Now()) + int64(letGoLasts))
	l.Wake()
	return nil
}
