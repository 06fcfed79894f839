package semisync

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

func say(is metav1.ConditionStatus, reason, format string, args ...any) metav1.Condition {
	return metav1.Condition{Type: api.ConditionSemiSyncReady, Status: is, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// offCondition is for a Cluster that does not ask for semi-sync.
func offCondition(primary *protocol.Report) metav1.Condition {
	if primary != nil && primary.MySQL.SemiSync.SourceEnabled {
		return say(metav1.ConditionFalse, api.ReasonConfigurationNotApplied,
			"semi-synchronous replication is not asked for, and the primary's server still has it on")
	}
	return say(metav1.ConditionTrue, api.ReasonSemiSyncNotConfigured, "semi-synchronous replication is not asked for")
}

// condition compares what is configured with what the running servers say; the first difference speaks.
func (f facts) condition(primary *protocol.Report, ackers []string, want int) metav1.Condition {
	c := f.cluster
	if c.Status.CurrentPrimary == "" {
		return say(metav1.ConditionUnknown, api.ReasonNoPrimary, "there is no primary yet")
	}
	if primary == nil {
		return say(metav1.ConditionUnknown, api.ReasonPrimaryUnreachable, "%s does not answer as the primary", c.Status.CurrentPrimary)
	}
	s := primary.MySQL.SemiSync
	switch {
	case !s.SourceEnabled:
		return say(metav1.ConditionFalse, api.ReasonSemiSyncOff, "%s has it switched off: commits are not acknowledged", primary.Instance)
	case !s.SourceActive:
		return say(metav1.ConditionFalse, api.ReasonSemiSyncOff, "%s goes on without acknowledgements: they did not come in time (%d of %d replicas acknowledge)",
			primary.Instance, len(ackers), want)
	case s.WaitFor != want:
		return say(metav1.ConditionFalse, api.ReasonConfigurationNotApplied, "%s waits for %d acknowledgements, not for %d", primary.Instance, s.WaitFor, want)
	case len(ackers) < want:
		return say(metav1.ConditionFalse, api.ReasonSemiSyncStalled, "commits wait: %d replicas acknowledge (%s) and %d are needed",
			len(ackers), strings.Join(ackers, ", "), want)
	case want < int(c.Spec.MinSyncReplicas):
		return say(metav1.ConditionFalse, api.ReasonSemiSyncLowered, "each commit waits for %d acknowledgements and not for %d, since only %s can give one; dataDurability is %s",
			want, c.Spec.MinSyncReplicas, strings.Join(ackers, ", "), c.Spec.MySQL.SemiSync.DataDurability)
	}
	if deaf := f.deaf(); len(deaf) > 0 {
		return say(metav1.ConditionFalse, api.ReasonConfigurationNotApplied, "the replica side is off on %s", strings.Join(deaf, ", "))
	}
	return say(metav1.ConditionTrue, api.ReasonHealthy, "every commit waits for %d acknowledgements", want)
}

// deaf are the replicas that follow the primary without acknowledging.
func (f facts) deaf() []string {
	var names []string
	for name, report := range f.reports {
		if f.attached(name) && !report.MySQL.SemiSync.ReplicaEnabled {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
