package topology

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/status"
	"cnmsql.co/operator/controllers/topology/core"
)

// commit writes what was decided into the status, if that is anything new. A conflict comes back as one.
func (r *Reconciler) commit(ctx context.Context, read *api.Cluster, d core.Decision) (written bool, err error) {
	next := read.DeepCopy()
	d.Status.DeepCopyInto(&next.Status)
	written, err = status.Patch(ctx, r.Client, Manager, read, next)
	if err != nil {
		return false, fmt.Errorf("committing %q: %w", d.Rule, err)
	}
	return written, nil
}

// proveFresh makes sure that the Cluster that was read is the present one.
func (r *Reconciler) proveFresh(ctx context.Context, read *api.Cluster) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(api.GroupVersion.WithKind("Cluster"))
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(read), live); err != nil {
		return fmt.Errorf("reading Cluster %s/%s again: %w", read.Namespace, read.Name, err)
	}
	if live.UID != read.UID || live.ResourceVersion != read.ResourceVersion {
		return fmt.Errorf("the Cluster was changed meanwhile: %w", errStale)
	}
	return nil
}

// log says what was decided, once per decision that changed or does something. The record of transaction
// sets and of lags, which is kept anew now and then, is no decision.
func (r *Reconciler) log(ctx context.Context, read *api.Cluster, d core.Decision) {
	level := 0
	if len(d.First)+len(d.Actions) == 0 && onlyRecords(&read.Status, &d.Status) {
		level = 1
	}
	var actions []string
	for _, a := range slices.Concat(d.First, d.Actions) {
		actions = append(actions, describe(a))
	}
	log := ctrl.LoggerFrom(ctx).V(level)
	for _, line := range d.Logs {
		log.Info(line.Message, line.Fields...)
	}
	log.Info("decided", "rule", d.Rule, "actions", actions, "phase", d.Status.Phase, "reason", d.Status.PhaseReason)
}

func onlyRecords(before, after *api.ClusterStatus) bool {
	a, b := before.DeepCopy(), after.DeepCopy()
	for _, s := range []*api.ClusterStatus{a, b} {
		s.GTIDExecutedByInstance, s.GTIDExecutedUpdatedAt = nil, nil
		s.ReplicationLagByInstance, s.ReplicationLagUpdatedAt = nil, nil
	}
	return equality.Semantic.DeepEqual(a, b)
}

func describe(a core.Action) string {
	text := fmt.Sprintf("%s %s", a.Kind, a.Instance)
	if a.Why != "" {
		text += " (" + a.Why + ")"
	}
	return text
}
