package validate

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "cnmsql.co/operator/api/v1alpha1"
)

const maxInstances = 100

// clusterName: Services are named after the Cluster, and every derived name has to fit.
func clusterName(c *api.Cluster) field.ErrorList {
	path := field.NewPath("metadata", "name")
	var errs field.ErrorList
	for _, problem := range validation.IsDNS1035Label(c.Name) {
		errs = append(errs, field.Invalid(path, c.Name, problem+"; Services are named after the Cluster"))
	}
	if len(c.Name) > api.MaxClusterNameLength {
		errs = append(errs, field.Invalid(path, c.Name, fmt.Sprintf(
			"has %d characters: use at most %d, so that the names derived from it (Pods, Services, Secrets) fit into 63", len(c.Name), api.MaxClusterNameLength)))
	}
	return errs
}

func flavorAndMode(c *api.Cluster) field.ErrorList {
	var errs field.ErrorList
	if c.Spec.Flavor != api.FlavorMySQL {
		errs = append(errs, field.NotSupported(spec.Child("flavor"), c.Spec.Flavor, []api.Flavor{api.FlavorMySQL}))
	}
	if c.Spec.Replication.Mode != api.ReplicationAsync {
		errs = append(errs, field.NotSupported(spec.Child("replication", "mode"), c.Spec.Replication.Mode, []api.ReplicationMode{api.ReplicationAsync}))
	}
	return errs
}

func instanceCount(c *api.Cluster) field.ErrorList {
	if n := c.Spec.Instances; n < 1 || n > maxInstances {
		return field.ErrorList{field.Invalid(spec.Child("instances"), n, fmt.Sprintf("use a number from 1 to %d", maxInstances))}
	}
	return nil
}

// syncReplicas: the primary cannot acknowledge to itself.
func syncReplicas(c *api.Cluster) field.ErrorList {
	s := &c.Spec
	var errs field.ErrorList
	for _, f := range []struct {
		name  string
		value int32
	}{{"minSyncReplicas", s.MinSyncReplicas}, {"maxSyncReplicas", s.MaxSyncReplicas}} {
		if f.value < 0 {
			errs = append(errs, field.Invalid(spec.Child(f.name), f.value, "use 0 or more"))
		}
		if f.value > 0 && f.value >= s.Instances {
			errs = append(errs, field.Invalid(spec.Child(f.name), f.value, fmt.Sprintf(
				"must be below instances (%d), because the primary cannot acknowledge to itself: lower it or raise instances", s.Instances)))
		}
	}
	if s.MinSyncReplicas > s.MaxSyncReplicas {
		errs = append(errs, field.Invalid(spec.Child("minSyncReplicas"), s.MinSyncReplicas, fmt.Sprintf(
			"exceeds maxSyncReplicas (%d): lower it or raise maxSyncReplicas", s.MaxSyncReplicas)))
	}
	return errs
}

func semiSync(c *api.Cluster) field.ErrorList {
	s := c.Spec.MySQL.SemiSync
	path := spec.Child("mysql", "semiSync")
	var errs field.ErrorList
	if s.Enabled && c.Spec.MinSyncReplicas < 1 {
		errs = append(errs, field.Invalid(path.Child("enabled"), true,
			"needs minSyncReplicas of at least 1, the number of replicas that must acknowledge each commit: set it"))
	}
	if s.DataDurability != api.DurabilityPreferred && s.DataDurability != api.DurabilityRequired {
		errs = append(errs, field.NotSupported(path.Child("dataDurability"), s.DataDurability, []api.DataDurability{api.DurabilityPreferred, api.DurabilityRequired}))
	}
	if s.TimeoutMillis < 100 {
		errs = append(errs, field.Invalid(path.Child("timeoutMillis"), s.TimeoutMillis, "use at least 100"))
	}
	return errs
}

// heartbeat: what is measured by the heartbeat needs it, and cannot be finer than its stamps.
func heartbeat(c *api.Cluster) field.ErrorList {
	path := spec.Child("replication")
	var errs field.ErrorList
	interval := c.HeartbeatInterval()
	if given := c.Spec.Replication.Heartbeat.Interval.Duration; given < api.MinHeartbeatInterval || given > api.MaxHeartbeatInterval {
		errs = append(errs, field.Invalid(path.Child("heartbeat", "interval"), given.String(), fmt.Sprintf("use a time from %s to %s", api.MinHeartbeatInterval, api.MaxHeartbeatInterval)))
	}
	bounds := []struct {
		path  *field.Path
		value *metav1.Duration
		least int // intervals
	}{
		// A replica that is not behind is measured to be up to one interval behind, and one stamp may come late.
		{path.Child("maxReadyLag"), c.Spec.Replication.MaxReadyLag, 3},
		{spec.Child("failoverPolicy", "maxReplicationLag"), c.Spec.FailoverPolicy.MaxReplicationLag, 1},
	}
	for _, b := range bounds {
		switch {
		case b.value == nil:
		case !c.HeartbeatEnabled():
			errs = append(errs, field.Invalid(b.path, b.value.Duration.String(), "needs the heartbeat, by which it is measured: enable spec.replication.heartbeat, or leave this out"))
		case b.value.Duration < time.Duration(b.least)*interval:
			errs = append(errs, field.Invalid(b.path, b.value.Duration.String(), fmt.Sprintf(
				"must be at least %s, which is %d times the heartbeat's interval: a replica that is not behind is measured to be up to one interval behind", time.Duration(b.least)*interval, b.least)))
		}
	}
	return errs
}

// delays are in seconds.
func delays(c *api.Cluster) field.ErrorList {
	s := &c.Spec
	var errs field.ErrorList
	atLeast := func(name string, value, least int32) {
		if value < least {
			errs = append(errs, field.Invalid(spec.Child(name), value, fmt.Sprintf("use at least %d", least)))
		}
	}
	atLeast("maxStartDelay", s.MaxStartDelay, 10)
	atLeast("maxStopDelay", s.MaxStopDelay, 10)
	atLeast("smartShutdownTimeout", *s.SmartShutdownTimeout, 0)
	atLeast("maxSwitchoverDelay", s.MaxSwitchoverDelay, 1)
	atLeast("failoverDelay", s.FailoverDelay, 0)
	if *s.SmartShutdownTimeout >= s.MaxStopDelay {
		errs = append(errs, field.Invalid(spec.Child("smartShutdownTimeout"), *s.SmartShutdownTimeout, fmt.Sprintf(
			"must be below maxStopDelay (%d), which includes it: lower it or raise maxStopDelay", s.MaxStopDelay)))
	}
	return errs
}
