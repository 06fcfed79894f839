package v1alpha1

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Defaults of the specification.
const (
	DefaultImageName            = "mysql:9.7"
	DefaultDatabase             = "app"
	DefaultBinlogFormat         = "ROW"
	DefaultSemiSyncTimeout      = int64(3600_000) // milliseconds
	DefaultMaxStartDelay        = int32(3600)     // seconds, as those below
	DefaultMaxStopDelay         = int32(1800)
	DefaultSmartShutdownTimeout = int32(30)
	DefaultMaxSwitchoverDelay   = int32(3600)
	DefaultTopologyKey          = "kubernetes.io/hostname"
	DefaultHeartbeatInterval    = time.Second
)

// Bounds of the time between two stamps of the heartbeat.
const (
	MinHeartbeatInterval = 500 * time.Millisecond
	MaxHeartbeatInterval = time.Minute
)

// AntiAffinityPreferred and AntiAffinityRequired are the kinds of anti-affinity.
const (
	AntiAffinityPreferred = "preferred"
	AntiAffinityRequired  = "required"
)

// Default fills the empty fields of a Cluster's specification, and nothing else: applied twice it changes
// nothing, and no field that a user has set is touched.
func (c *Cluster) Default() {
	s := &c.Spec
	orDefault(&s.Flavor, FlavorMySQL)
	orDefault(&s.ImageName, DefaultImageName)
	orDefault(&s.ImagePullPolicy, corev1.PullIfNotPresent)
	orDefault(&s.Instances, 1)
	orDefault(&s.MaxSyncReplicas, s.MinSyncReplicas)
	orDefault(&s.MySQL.BinlogFormat, DefaultBinlogFormat)
	if s.MySQL.SemiSync == nil {
		s.MySQL.SemiSync = &SemiSyncConfiguration{}
	}
	orDefault(&s.MySQL.SemiSync.TimeoutMillis, DefaultSemiSyncTimeout)
	orDefault(&s.MySQL.SemiSync.DataDurability, DurabilityPreferred)
	orDefault(&s.Replication.Mode, ReplicationAsync)
	c.defaultHeartbeat()
	if m := s.Managed; m != nil && m.Services != nil {
		for n := range m.Services.Additional {
			orDefault(&m.Services.Additional[n].UpdateStrategy, ServicePatch)
		}
	}
	c.defaultBootstrap()
	if s.Affinity.EnablePodAntiAffinity == nil {
		s.Affinity.EnablePodAntiAffinity = new(true)
	}
	orDefault(&s.Affinity.TopologyKey, DefaultTopologyKey)
	orDefault(&s.Affinity.PodAntiAffinityType, AntiAffinityPreferred)
	orDefault(&s.MaxStartDelay, DefaultMaxStartDelay)
	orDefault(&s.MaxStopDelay, DefaultMaxStopDelay)
	if s.EnablePDB == nil {
		s.EnablePDB = new(true)
	}
	if s.EnableSwitchoverOnDrain == nil {
		s.EnableSwitchoverOnDrain = new(true)
	}
	if s.FailoverPolicy == nil {
		s.FailoverPolicy = &FailoverPolicy{}
	}
	if s.SmartShutdownTimeout == nil {
		s.SmartShutdownTimeout = new(min(DefaultSmartShutdownTimeout, s.MaxStopDelay/2))
	}
	orDefault(&s.MaxSwitchoverDelay, DefaultMaxSwitchoverDelay)
	orDefault(&s.LogLevel, LogLevelInfo)
}

func (c *Cluster) defaultHeartbeat() {
	r := &c.Spec.Replication
	if r.Heartbeat == nil {
		r.Heartbeat = &HeartbeatConfiguration{}
	}
	if r.Heartbeat.Enabled == nil {
		r.Heartbeat.Enabled = new(true)
	}
	if r.Heartbeat.Interval == nil {
		r.Heartbeat.Interval = &metav1.Duration{Duration: DefaultHeartbeatInterval}
	}
}

func (c *Cluster) defaultBootstrap() {
	s := &c.Spec
	if s.Bootstrap == nil {
		s.Bootstrap = &BootstrapConfiguration{}
	}
	if s.Bootstrap.InitDB == nil {
		s.Bootstrap.InitDB = &InitDBConfiguration{}
	}
	orDefault(&s.Bootstrap.InitDB.Database, DefaultDatabase)
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// SemiSyncEnabled tells whether commits wait for acknowledgements.
func (c *Cluster) SemiSyncEnabled() bool {
	return c.Spec.MySQL.SemiSync != nil && c.Spec.MySQL.SemiSync.Enabled && c.Spec.MinSyncReplicas > 0
}

// HeartbeatEnabled tells whether the primary stamps the heartbeat.
func (c *Cluster) HeartbeatEnabled() bool {
	h := c.Spec.Replication.Heartbeat
	return h == nil || h.Enabled == nil || *h.Enabled
}

// HeartbeatInterval is the time between two stamps, within its bounds whatever the specification says.
func (c *Cluster) HeartbeatInterval() time.Duration {
	if h := c.Spec.Replication.Heartbeat; h != nil && h.Interval != nil {
		return min(max(h.Interval.Duration, MinHeartbeatInterval), MaxHeartbeatInterval)
	}
	return DefaultHeartbeatInterval
}

// MaxReadyLag is how far behind a replica may be and be Ready; 0 for no bound, and where nothing measures it.
func (c *Cluster) MaxReadyLag() time.Duration {
	if d := c.Spec.Replication.MaxReadyLag; d != nil && c.HeartbeatEnabled() {
		return d.Duration
	}
	return 0
}

// Established tells whether the Cluster ever had a primary. From then on no instance is initialised empty.
func (c *Cluster) Established() bool {
	return c.Status.EstablishedAt != nil || c.Status.CurrentPrimary != "" || c.Status.CurrentPrimaryGeneration > 0
}
