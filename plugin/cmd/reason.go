package cmd

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

// reason looks for the event that tells why a switchover was not carried out. Events come a moment after
// the status, and a user may not be allowed to read them.
func (p *promotion) reason(ctx context.Context, c *api.Cluster) string {
	for range 10 {
		if text := p.event(ctx, c); text != "" {
			return text
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
			continue
		}
		break
	}
	return fmt.Sprintf("the operator refused or ended it, or somebody asked for %s instead; kubectl describe cluster %s may tell more", c.Status.TargetPrimary, c.Name)
}

func (p *promotion) event(ctx context.Context, c *api.Cluster) string {
	list := &corev1.EventList{}
	if err := p.c.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
		return ""
	}
	ends := []string{api.EventSwitchoverRefused, api.EventSwitchoverAborted}
	text, at := "", p.started.Add(-time.Second)
	for _, e := range list.Items {
		if when := eventTime(&e); e.InvolvedObject.UID == c.UID && slices.Contains(ends, e.Reason) && when.After(at) {
			text, at = e.Message, when
		}
	}
	return text
}

func eventTime(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case !e.EventTime.IsZero():
		return e.EventTime.Time
	}
	return e.LastTimestamp.Time
}
