package agent

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/role"
)

// claimTries is how often a claim is tried on a Cluster that others write at the same time.
const claimTries = 4

// claim writes this instance into the Cluster as its primary: one conditional update of what was read from
// the API server just before. A write of somebody else in between that changes nothing about the role is no
// reason to decide anew. When the outcome is unknown, the next decision is made from the object.
func (l *Loop) claim(ctx context.Context, m *moment, d role.Decision) error {
	var err error
	for range claimTries {
		var cluster *api.Cluster
		if cluster, err = l.o.Watcher.Live(ctx); err != nil {
			return fmt.Errorf("claiming the role: %w", err)
		}
		if why := role.Claimable(l.o.Name, m.intent, intentOf(cluster, l.o.Name), d, l.o.Keeper.Remaining()); why != "" {
			return fmt.Errorf("%w: %s", errStale, why)
		}
		if err = l.writeClaim(ctx, cluster.DeepCopy(), m, d); !apierrors.IsConflict(err) {
			break
		}
	}
	switch {
	case err == nil:
		return nil
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", errStale, err)
	}
	// Whether it was stored is seen in the object.
	_, _ = l.o.Watcher.Live(ctx)
	return fmt.Errorf("claiming the role: %w", err)
}

func (l *Loop) writeClaim(ctx context.Context, cluster *api.Cluster, m *moment, d role.Decision) error {
	s := &cluster.Status
	s.CurrentPrimary = l.o.Name
	s.CurrentPrimaryTimestamp = new(metav1.NowMicro())
	s.CurrentPrimaryGeneration = m.intent.Transition.Generation
	s.PromotionGTIDExecuted = d.Step.Executed.String()
	s.CurrentPrimaryServerUUID = m.facts.MySQL.ServerUUID
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	asked := l.o.Clock.Now()
	stored, err := l.o.API.UpdateClusterStatus(ctx, cluster)
	if err == nil {
		l.o.Watcher.accept(stored, asked)
	}
	return err
}
