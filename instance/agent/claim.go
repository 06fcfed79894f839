package agent

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/role"
)

// claim writes this instance into the Cluster as its primary: one conditional update of what was read from
// the API server just before. When its outcome is unknown, the next decision is made from the object.
func (l *Loop) claim(ctx context.Context, m *moment, d role.Decision) error {
	cluster, err := l.o.Watcher.Live(ctx)
	if err != nil {
		return fmt.Errorf("claiming the role: %w", err)
	}
	if why := l.claimable(m.intent, cluster, d); why != "" {
		return fmt.Errorf("%w: %s", errStale, why)
	}
	cluster = cluster.DeepCopy()
	s := &cluster.Status
	s.CurrentPrimary = l.o.Name
	s.CurrentPrimaryTimestamp = new(metav1.NowMicro())
	s.CurrentPrimaryGeneration = m.intent.Transition.Generation
	s.PromotionGTIDExecuted = d.Step.Executed.String()
	s.CurrentPrimaryServerUUID = m.facts.MySQL.ServerUUID
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	asked := l.o.Clock.Now()
	stored, err := l.o.API.UpdateClusterStatus(callCtx, cluster)
	if err == nil {
		l.o.Watcher.accept(stored, asked)
		return nil
	}
	if _, liveErr := l.o.Watcher.Live(ctx); liveErr == nil && apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", errStale, err)
	}
	return fmt.Errorf("claiming the role: %w", err)
}

// claimable says why the Cluster, as it is now, is not the one that the claim was decided for.
func (l *Loop) claimable(decided role.Intent, now *api.Cluster, d role.Decision) string {
	s, t := &now.Status, now.Status.PrimaryTransition
	lease := l.o.Keeper.Facts()
	switch {
	case t == nil || t.Attempt != d.Step.Attempt || t.To != l.o.Name:
		return "the transition is not the same any more"
	case s.CurrentPrimary != decided.CurrentPrimary || s.CurrentPrimaryGeneration != decided.Generation:
		return "the primary has changed"
	case t.Generation != s.CurrentPrimaryGeneration+1:
		return "the transition is not for the next generation"
	case !lease.Mine || !lease.InForce || l.o.Keeper.Remaining() < time.Second:
		return "the primary lease is not in force"
	}
	return ""
}
