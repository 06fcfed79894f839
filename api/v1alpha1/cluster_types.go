package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Cluster is one MySQL primary with its replicas, seen as one thing.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName={mysql,mysqlcluster},categories={all}
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.instances,statuspath=.status.instances,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="Flavor",type=string,JSONPath=`.status.flavor`
// +kubebuilder:printcolumn:name="Instances",type=integer,JSONPath=`.status.instances`
// +kubebuilder:printcolumn:name="Ready",type=integer,JSONPath=`.status.readyInstances`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Primary",type=string,JSONPath=`.status.currentPrimary`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 46",message="metadata.name: at most 46 characters, so that the names derived from it (Pods, Services, Secrets) fit into 63"
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name: a lower-case letter first, then letters, digits and '-' only (no dots): Services are named after it"
// +kubebuilder:validation:XValidation:rule=`(!has(oldSelf.status) || !has(oldSelf.status.establishedAt) && !has(oldSelf.status.currentPrimary)) || (has(self.spec.bootstrap) && has(self.spec.bootstrap.initdb) && has(self.spec.bootstrap.initdb.database) ? self.spec.bootstrap.initdb.database : 'app') == (has(oldSelf.spec.bootstrap) && has(oldSelf.spec.bootstrap.initdb) && has(oldSelf.spec.bootstrap.initdb.database) ? oldSelf.spec.bootstrap.initdb.database : 'app')`,fieldPath=".spec.bootstrap",message="was used when the Cluster was made and has no effect any more: set it back"
// +kubebuilder:validation:XValidation:rule=`(!has(oldSelf.status) || !has(oldSelf.status.establishedAt) && !has(oldSelf.status.currentPrimary)) || (has(self.spec.bootstrap) && has(self.spec.bootstrap.initdb) && has(self.spec.bootstrap.initdb.owner) ? self.spec.bootstrap.initdb.owner : "") == (has(oldSelf.spec.bootstrap) && has(oldSelf.spec.bootstrap.initdb) && has(oldSelf.spec.bootstrap.initdb.owner) ? oldSelf.spec.bootstrap.initdb.owner : "")`,fieldPath=".spec.bootstrap",message="was used when the Cluster was made and has no effect any more: set it back"
// +kubebuilder:validation:XValidation:rule=`(!has(oldSelf.status) || !has(oldSelf.status.establishedAt) && !has(oldSelf.status.currentPrimary)) || (has(self.spec.bootstrap) && has(self.spec.bootstrap.initdb) && has(self.spec.bootstrap.initdb.secret) && has(self.spec.bootstrap.initdb.secret.name) ? self.spec.bootstrap.initdb.secret.name : "") == (has(oldSelf.spec.bootstrap) && has(oldSelf.spec.bootstrap.initdb) && has(oldSelf.spec.bootstrap.initdb.secret) && has(oldSelf.spec.bootstrap.initdb.secret.name) ? oldSelf.spec.bootstrap.initdb.secret.name : "")`,fieldPath=".spec.bootstrap",message="was used when the Cluster was made and has no effect any more: set it back"
// +kubebuilder:validation:XValidation:rule=`(!has(oldSelf.status) || !has(oldSelf.status.establishedAt) && !has(oldSelf.status.currentPrimary)) || (has(self.spec.bootstrap) && has(self.spec.bootstrap.initdb) && has(self.spec.bootstrap.initdb.postInitSQL) ? self.spec.bootstrap.initdb.postInitSQL : []) == (has(oldSelf.spec.bootstrap) && has(oldSelf.spec.bootstrap.initdb) && has(oldSelf.spec.bootstrap.initdb.postInitSQL) ? oldSelf.spec.bootstrap.initdb.postInitSQL : [])`,fieldPath=".spec.bootstrap",message="was used when the Cluster was made and has no effect any more: set it back"
// +kubebuilder:validation:XValidation:rule=`(!has(oldSelf.status) || !has(oldSelf.status.establishedAt) && !has(oldSelf.status.currentPrimary)) || (has(self.spec.bootstrap) && has(self.spec.bootstrap.initdb) && has(self.spec.bootstrap.initdb.characterSet) ? self.spec.bootstrap.initdb.characterSet : "") == (has(oldSelf.spec.bootstrap) && has(oldSelf.spec.bootstrap.initdb) && has(oldSelf.spec.bootstrap.initdb.characterSet) ? oldSelf.spec.bootstrap.initdb.characterSet : "")`,fieldPath=".spec.bootstrap",message="was used when the Cluster was made and has no effect any more: set it back"
// +kubebuilder:validation:XValidation:rule=`(!has(oldSelf.status) || !has(oldSelf.status.establishedAt) && !has(oldSelf.status.currentPrimary)) || (has(self.spec.bootstrap) && has(self.spec.bootstrap.initdb) && has(self.spec.bootstrap.initdb.collation) ? self.spec.bootstrap.initdb.collation : "") == (has(oldSelf.spec.bootstrap) && has(oldSelf.spec.bootstrap.initdb) && has(oldSelf.spec.bootstrap.initdb.collation) ? oldSelf.spec.bootstrap.initdb.collation : "")`,fieldPath=".spec.bootstrap",message="was used when the Cluster was made and has no effect any more: set it back"
type Cluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what is wanted.
	Spec ClusterSpec `json:"spec"`
	// Status is what was last seen and decided.
	// +optional
	Status ClusterStatus `json:"status,omitempty"`
}

// ClusterList is a list of Clusters.
//
// +kubebuilder:object:root=true
type ClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Cluster `json:"items"`
}

// ClusterSpec is what the user wants.
//
// +kubebuilder:validation:XValidation:rule="(has(self.flavor) ? self.flavor : 'mysql') == (has(oldSelf.flavor) ? oldSelf.flavor : 'mysql')",message="flavor is immutable, because the data is of that kind of server: set it back, or make a new Cluster"
// +kubebuilder:validation:XValidation:rule="(has(self.replication) && has(self.replication.mode) ? self.replication.mode : 'async') == (has(oldSelf.replication) && has(oldSelf.replication.mode) ? oldSelf.replication.mode : 'async')",message="replication.mode is immutable: set it back, or make a new Cluster"
// +kubebuilder:validation:XValidation:rule="has(self.binlogStorage) == has(oldSelf.binlogStorage)",message="binlogStorage cannot be added or removed later, because existing instances have their binary and relay logs, with transactions that are not applied yet, in the other place: set it back, or make a new Cluster"
// +kubebuilder:validation:XValidation:rule="!has(self.minSyncReplicas) || !has(self.maxSyncReplicas) || self.maxSyncReplicas == 0 || self.minSyncReplicas <= self.maxSyncReplicas",message="minSyncReplicas must not exceed maxSyncReplicas: lower it or raise maxSyncReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.maxSyncReplicas) || self.maxSyncReplicas == 0 || self.maxSyncReplicas < self.instances",message="maxSyncReplicas must be below instances: the primary cannot acknowledge to itself"
// +kubebuilder:validation:XValidation:rule="!has(self.minSyncReplicas) || self.minSyncReplicas == 0 || self.minSyncReplicas < self.instances",message="minSyncReplicas must be below instances: the primary cannot acknowledge to itself"
// +kubebuilder:validation:XValidation:rule="!has(self.mysql) || !has(self.mysql.semiSync) || !has(self.mysql.semiSync.enabled) || !self.mysql.semiSync.enabled || (has(self.minSyncReplicas) && self.minSyncReplicas >= 1)",message="mysql.semiSync.enabled needs minSyncReplicas of at least 1: the number of replicas that must acknowledge each commit"
type ClusterSpec struct {
	// Description is a free text for people.
	// +optional
	Description string `json:"description,omitempty"`

	// InheritedMetadata is added to every object that the operator makes for this Cluster.
	// It never changes selectors, and it cannot replace the operator's own labels and annotations. A change
	// reaches Services, ServiceAccounts, Roles and certificates at once, but neither the Pods, volume claims,
	// Secrets and the Lease that exist (Pods get it when they are made anew) nor the condition UpToDate: metadata
	// is no reason to restart a server.
	// +optional
	InheritedMetadata *EmbeddedMetadata `json:"inheritedMetadata,omitempty"`

	// Flavor is the kind of server. Immutable. Default: mysql (MySQL and Percona Server).
	// +kubebuilder:validation:Enum=mysql
	// +optional
	Flavor Flavor `json:"flavor,omitempty"`

	// ImageName is the container image that holds the server, as published: MySQL or Percona Server,
	// 8.0.26 or later. Default: mysql:9.7.
	// +kubebuilder:validation:MinLength=1
	// +optional
	ImageName string `json:"imageName,omitempty"`

	// ImagePullPolicy applies to the server's image. Default: IfNotPresent.
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// ImagePullSecrets name the Secrets for pulling images, in the Cluster's namespace.
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`

	// Instances is the number of servers: one primary, the others replicas. Three or more give a meaningful
	// automatic failover. Lowering it removes Pods, never volumes.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	Instances int32 `json:"instances"`

	// MinSyncReplicas is how many replicas must acknowledge each commit when semi-synchronous replication is
	// on. Below instances. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MinSyncReplicas int32 `json:"minSyncReplicas,omitempty"`

	// MaxSyncReplicas is the upper bound for that count. At least minSyncReplicas and below instances. It is
	// checked, and has no effect yet: the primary waits for minSyncReplicas. Default: 0, meaning minSyncReplicas.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxSyncReplicas int32 `json:"maxSyncReplicas,omitempty"`

	// MySQL is the servers' configuration.
	// +optional
	MySQL MySQLConfiguration `json:"mysql,omitempty"`

	// Replication is how instances follow the primary.
	// +optional
	Replication ReplicationConfiguration `json:"replication,omitempty"`

	// Storage is the volume of each instance: its data and, without binlogStorage, its binary logs.
	Storage StorageConfiguration `json:"storage"`

	// BinlogStorage, when given, is a second volume of each instance, for its binary and relay logs.
	// Given when the Cluster is made, or never: it can be neither added nor removed later.
	// +optional
	BinlogStorage *StorageConfiguration `json:"binlogStorage,omitempty"`

	// Bootstrap is how the first instance gets its data. Used once: immutable from the first primary on.
	// +optional
	Bootstrap *BootstrapConfiguration `json:"bootstrap,omitempty"`

	// RootPasswordSecret names an existing Secret whose key "password" is root's password. It is given to the
	// server when the first instance is initialised; what the Secret says later changes no password. Default:
	// a generated one, <cluster>-root.
	// +optional
	RootPasswordSecret *corev1.LocalObjectReference `json:"rootPasswordSecret,omitempty"`

	// EnableSuperuserAccess lets root log in over the network, at the time the first instance is
	// initialised. Default: false, root logs in from within the Pod only.
	// +optional
	EnableSuperuserAccess bool `json:"enableSuperuserAccess,omitempty"`

	// Certificates is how the servers prove who they are.
	// +optional
	Certificates *CertificatesConfiguration `json:"certificates,omitempty"`

	// Resources of the server's container. The memory limit also sizes the InnoDB buffer pool, unless
	// mysql.parameters does.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`

	// Affinity is where Pods are placed. Default: Pods of one Cluster prefer different nodes.
	// +optional
	Affinity AffinityConfiguration `json:"affinity,omitempty"`

	// TopologySpreadConstraints are passed to the Pods as they are.
	// +optional
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`

	// PriorityClassName is passed to the Pods.
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`

	// SchedulerName is passed to the Pods.
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`

	// Env is added to the server's container. Names beginning with CNMSQL_ or MYSQL are refused.
	// +kubebuilder:validation:XValidation:rule="self.all(e, !e.name.startsWith('CNMSQL_') && !e.name.startsWith('MYSQL'))",message="env: names beginning with CNMSQL_ or MYSQL are the operator's"
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// EnvFrom is added to the server's container.
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// PodSecurityContext replaces the Pods' security context. Default: non-root (uid and gid 999), RuntimeDefault seccomp.
	// +optional
	PodSecurityContext *corev1.PodSecurityContext `json:"podSecurityContext,omitempty"`

	// SecurityContext replaces the containers' security context. Default: no privileges, read-only root file system.
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`

	// ServiceAccountTemplate adds labels and annotations to the instances' ServiceAccounts.
	// +optional
	ServiceAccountTemplate *ServiceAccountTemplate `json:"serviceAccountTemplate,omitempty"`

	// MaxStartDelay is how many seconds a server may take to accept connections (crash recovery included)
	// before its container is restarted. Default: 3600.
	// +kubebuilder:validation:Minimum=10
	// +optional
	MaxStartDelay int32 `json:"maxStartDelay,omitempty"`

	// MaxStopDelay is how many seconds a server may take to stop cleanly before it is killed. It is the Pod's
	// grace period. Default: 1800.
	// +kubebuilder:validation:Minimum=10
	// +optional
	MaxStopDelay int32 `json:"maxStopDelay,omitempty"`

	// SmartShutdownTimeout is how many seconds a stopping primary waits for the operator to move the role
	// to a replica before it steps down by itself. Default: 30. Must be below maxStopDelay.
	// +kubebuilder:validation:Minimum=0
	// +optional
	SmartShutdownTimeout *int32 `json:"smartShutdownTimeout,omitempty"`

	// MaxSwitchoverDelay is how many seconds a switchover may take before it is ended and the old primary
	// is writable again. Default: 3600.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxSwitchoverDelay int32 `json:"maxSwitchoverDelay,omitempty"`

	// FailoverDelay is how many seconds a primary must have failed before another instance is promoted.
	// Default: 0, at once.
	// +kubebuilder:validation:Minimum=0
	// +optional
	FailoverDelay int32 `json:"failoverDelay,omitempty"`

	// EnablePDB makes a disruption budget that lets one instance at a time be evicted. None is made for a single
	// instance: it would keep its node from ever being drained. Default: true.
	// +optional
	EnablePDB *bool `json:"enablePDB,omitempty"`

	// EnableSwitchoverOnDrain moves the role away from a primary whose Pod is being stopped, and from one whose node
	// is cordoned (that only where the operator may read nodes). When it is false, the primary's end is answered by a
	// failover. Default: true.
	// +optional
	EnableSwitchoverOnDrain *bool `json:"enableSwitchoverOnDrain,omitempty"`

	// Managed is what the operator keeps besides the instances.
	// +optional
	Managed *ManagedConfiguration `json:"managed,omitempty"`

	// FailoverPolicy limits what an automatic change of primary may do. Default: no limits.
	// +optional
	FailoverPolicy *FailoverPolicy `json:"failoverPolicy,omitempty"`

	// LogLevel is how much the instance managers log. Default: info.
	// +kubebuilder:validation:Enum=error;info;debug
	// +optional
	LogLevel LogLevel `json:"logLevel,omitempty"`
}

// FailoverPolicy limits what an automatic change of primary may do.
type FailoverPolicy struct {
	// MaxTransactionsBehind is how many of the transactions that the failed primary was last known to have an
	// instance may miss and still be promoted. When all miss more, nobody is. What is known of the primary may be
	// half a minute old, so the true loss may be larger. Default: unset, no limit.
	// +kubebuilder:validation:Minimum=0
	// +optional
	MaxTransactionsBehind *int64 `json:"maxTransactionsBehind,omitempty"`

	// MaxReplicationLag is how far behind the failed primary an instance that misses transactions may have been, by the
	// heartbeat, and still be promoted; one that misses nothing may be. When all were further behind, or of none it is
	// known, nobody is promoted. Needs the heartbeat. For example 30s. Default: unset, no limit.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(\.[0-9]{1,9})?(ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=16
	// +optional
	MaxReplicationLag *metav1.Duration `json:"maxReplicationLag,omitempty"`

	// PreferredPrimary names the instances that should have the role, the most preferred first. Among candidates
	// that hold the same an election chooses by it. When a more preferred instance than the primary is fit, the
	// role moves to it in a switchover. Names of instances that do not exist are passed over.
	// +kubebuilder:validation:MaxItems=100
	// +listType=set
	// +optional
	PreferredPrimary []string `json:"preferredPrimary,omitempty"`

	// MinTimeBetweenFailovers is the brake: no automatic failover, and no automatic return to a preferred instance,
	// until this long after the last failover has settled. Meanwhile the failed primary is waited for. It does not
	// hold back what people ask for, nor the move away from a Pod that is being stopped or fenced. For example 10m.
	// Default: unset, no brake.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(\.[0-9]{1,9})?(ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=16
	// +optional
	MinTimeBetweenFailovers *metav1.Duration `json:"minTimeBetweenFailovers,omitempty"`

	// PrimaryStabilityWindow is how long a promoted primary must have been healthy without a break for the failover
	// to count as settled. A primary that was never healthy settles with its promotion. It has no effect without
	// minTimeBetweenFailovers. For example 2m. Default: unset, settled with the promotion.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(\.[0-9]{1,9})?(ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=16
	// +optional
	PrimaryStabilityWindow *metav1.Duration `json:"primaryStabilityWindow,omitempty"`
}

// Flavor is a kind of server.
type Flavor string

// FlavorMySQL is MySQL and Percona Server for MySQL.
const FlavorMySQL Flavor = "mysql"

// LogLevel is how much a process logs.
type LogLevel string

// The log levels.
const (
	LogLevelError LogLevel = "error"
	LogLevelInfo  LogLevel = "info"
	LogLevelDebug LogLevel = "debug"
)

// EmbeddedMetadata is labels and annotations for an object that something else names.
type EmbeddedMetadata struct {
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// ServiceAccountTemplate is what a user may add to a ServiceAccount.
type ServiceAccountTemplate struct {
	// +optional
	Metadata EmbeddedMetadata `json:"metadata,omitempty"`
}

// MySQLConfiguration is the servers' configuration.
type MySQLConfiguration struct {
	// Parameters go to the [mysqld] section of my.cnf. What the operator manages (replication, paths, TLS,
	// read-only) is refused in every spelling. A changed parameter takes effect when a server starts.
	// +kubebuilder:validation:MaxProperties=512
	// +optional
	Parameters map[string]string `json:"parameters,omitempty"`

	// BinlogFormat is the format of the binary log. Default: ROW, the only one under which a replica is
	// certain to hold the same data.
	// +kubebuilder:validation:Enum=ROW;MIXED;STATEMENT
	// +optional
	BinlogFormat string `json:"binlogFormat,omitempty"`

	// AdditionalConfigFiles are files (name → content) read after my.cnf's own settings and before the
	// managed ones. Names end in ".cnf". Managed keys are refused in them as in parameters.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	AdditionalConfigFiles map[string]string `json:"additionalConfigFiles,omitempty"`

	// SemiSync is semi-synchronous replication.
	// +optional
	SemiSync *SemiSyncConfiguration `json:"semiSync,omitempty"`
}

// SemiSyncConfiguration is semi-synchronous replication: a commit is answered only when minSyncReplicas
// replicas have written it to their relay logs.
type SemiSyncConfiguration struct {
	// Enabled turns it on. Default: false.
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// TimeoutMillis is how long a commit waits for acknowledgements before the primary goes on without
	// them (and may then lose acknowledged writes when it fails). Default: 3600000, one hour: writes stand
	// still rather than become unsafe.
	// +kubebuilder:validation:Minimum=100
	// +optional
	TimeoutMillis int64 `json:"timeoutMillis,omitempty"`

	// DataDurability decides what goes first when replicas are missing. With "preferred", the default, commits wait for
	// as many of minSyncReplicas as can acknowledge, at least for one; and a failover goes on, and says so, while so
	// many replicas do not answer that an acknowledged commit may exist on those alone. With "required" commits wait for
	// all of minSyncReplicas, up to timeoutMillis; and nobody is promoted until enough of them answer.
	// +kubebuilder:validation:Enum=preferred;required
	// +optional
	DataDurability DataDurability `json:"dataDurability,omitempty"`
}

// DataDurability is what goes first when an acknowledged commit may be lost by a failover.
type DataDurability string

// The kinds of durability.
const (
	// DurabilityPreferred promotes the best instance that answers.
	DurabilityPreferred DataDurability = "preferred"
	// DurabilityRequired promotes nobody until no acknowledged commit can be missing.
	DurabilityRequired DataDurability = "required"
)

// ReplicationConfiguration is how instances follow the primary.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxReadyLag) || !has(self.heartbeat) || !has(self.heartbeat.enabled) || self.heartbeat.enabled",message="maxReadyLag needs the heartbeat, by which the lag is measured: enable it, or leave maxReadyLag out"
// +kubebuilder:validation:XValidation:rule="!has(self.maxReadyLag) || duration(self.maxReadyLag) >= (has(self.heartbeat) && has(self.heartbeat.interval) ? duration(self.heartbeat.interval) + duration(self.heartbeat.interval) + duration(self.heartbeat.interval) : duration('3s'))",message="maxReadyLag must be at least three intervals of the heartbeat (3s by default): a replica that is not behind is measured to be up to one interval behind"
type ReplicationConfiguration struct {
	// Mode is the kind of replication. Immutable. Default: async (also the mode for semi-synchronous replication).
	// +kubebuilder:validation:Enum=async
	// +optional
	Mode ReplicationMode `json:"mode,omitempty"`

	// Heartbeat is how it is known how far behind a replica is.
	// +optional
	Heartbeat *HeartbeatConfiguration `json:"heartbeat,omitempty"`

	// MaxReadyLag is how far behind a replica may be and still be read from: one that is further behind, or of which it
	// is not known, is not Ready. It goes on replicating and acknowledging, and its lag bounds no failover. The Services
	// -ro and -r then lead to Ready instances only. While no primary stamps the heartbeat every replica falls behind:
	// choose a bound longer than a failover takes, and than clocks of nodes differ. Needs the heartbeat, and at least
	// three of its intervals. For example 30s. Default: unset, replicas are Ready however far behind.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(\.[0-9]{1,9})?(ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=16
	// +optional
	MaxReadyLag *metav1.Duration `json:"maxReadyLag,omitempty"`
}

// HeartbeatConfiguration is the stamps that the primary writes and that replicas are measured by. They are in the table
// heartbeat.heartbeat, which has the columns that pt-heartbeat gives it, with times in UTC. They count as transactions in
// no comparison of instances.
type HeartbeatConfiguration struct {
	// Enabled makes the primary stamp. Default: true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('500ms') && duration(self) <= duration('1m')",message="interval must be from 500ms to 1m"
	// Interval between two stamps, from 500ms to 1m. A replica that is not behind is measured to be up to one interval
	// behind. Default: 1s.
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:Pattern=`^([0-9]{1,6}(\.[0-9]{1,9})?(ms|s|m|h))+$`
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Interval *metav1.Duration `json:"interval,omitempty"`
}

// ReplicationMode is a kind of replication.
type ReplicationMode string

// ReplicationAsync is GTID replication from one primary.
const ReplicationAsync ReplicationMode = "async"

// StorageConfiguration is a volume of each instance.
//
// +kubebuilder:validation:XValidation:rule="has(self.storageClass) == has(oldSelf.storageClass) && (!has(self.storageClass) || self.storageClass == oldSelf.storageClass)",message="storageClass is immutable, because existing volumes cannot change it: set it back"
type StorageConfiguration struct {
	// Size of the volume, for example 10Gi. It never shrinks. A larger size is that of volumes made from then
	// on; volumes that exist keep theirs, and nothing grows them yet.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="size must be above zero"
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).compareTo(quantity(string(oldSelf))) >= 0",message="size can only grow, because volumes do not shrink: set it back"
	Size resource.Quantity `json:"size"`

	// StorageClass of the volume. Default: the Kubernetes cluster's default class. Immutable.
	// +optional
	StorageClass *string `json:"storageClass,omitempty"`

	// PVCTemplate is the rest of the claim's specification; size and storageClass win over it. Default
	// access mode: ReadWriteOnce. A change concerns volumes made from then on.
	// +optional
	PVCTemplate *corev1.PersistentVolumeClaimSpec `json:"pvcTemplate,omitempty"`
}

// BootstrapConfiguration is how the first instance gets its data.
type BootstrapConfiguration struct {
	// InitDB makes a new, empty server.
	// +optional
	InitDB *InitDBConfiguration `json:"initdb,omitempty"`
}

// InitDBConfiguration is what a new server contains.
type InitDBConfiguration struct {
	// Database that is created. Default: app.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['mysql', 'sys', 'performance_schema', 'information_schema', 'heartbeat'])",message="database: this name is the server's own"
	// +optional
	Database string `json:"database,omitempty"`

	// Owner is the account with all privileges on that database. Default: the user name in the secret,
	// else the database's name.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['root', 'mysql.sys', 'mysql.session', 'mysql.infoschema']) && !self.lowerAscii().startsWith('cnmsql_')",message="owner: this account is the server's or the operator's own"
	// +optional
	Owner string `json:"owner,omitempty"`

	// Secret names an existing Secret with the owner's "username" and "password". Default: a generated one, <cluster>-app.
	// +optional
	Secret *corev1.LocalObjectReference `json:"secret,omitempty"`

	// PostInitSQL are statements run once as root after the server is initialised, each in order. They are
	// replicated. A statement that fails makes the initialisation fail and be done again. At most 128, of
	// 65536 characters each.
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=65536
	// +optional
	PostInitSQL []string `json:"postInitSQL,omitempty"`

	// CharacterSet of the database. Default: the server's.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_]+$`
	// +optional
	CharacterSet string `json:"characterSet,omitempty"`

	// Collation of the database. Default: the character set's.
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_]+$`
	// +optional
	Collation string `json:"collation,omitempty"`
}

// CertificatesConfiguration is how the servers prove who they are. Certificates are issued by cert-manager
// from a certificate authority of the Cluster's own.
type CertificatesConfiguration struct {
	// ServerAltDNSNames are further host names for which the servers' certificates are valid.
	// +optional
	ServerAltDNSNames []string `json:"serverAltDNSNames,omitempty"`
}

// AffinityConfiguration is where Pods are placed.
type AffinityConfiguration struct {
	// EnablePodAntiAffinity keeps Pods of one Cluster apart. Default: true.
	// +optional
	EnablePodAntiAffinity *bool `json:"enablePodAntiAffinity,omitempty"`

	// TopologyKey is the node label by which they are kept apart. Default: kubernetes.io/hostname.
	// +optional
	TopologyKey string `json:"topologyKey,omitempty"`

	// PodAntiAffinityType is "preferred" (the default) or "required".
	// +kubebuilder:validation:Enum=preferred;required
	// +optional
	PodAntiAffinityType string `json:"podAntiAffinityType,omitempty"`

	// NodeSelector is passed to the Pods.
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations are passed to the Pods.
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// NodeAffinity is passed to the Pods.
	// +optional
	NodeAffinity *corev1.NodeAffinity `json:"nodeAffinity,omitempty"`

	// AdditionalPodAntiAffinity is added to the operator's own.
	// +optional
	AdditionalPodAntiAffinity *corev1.PodAntiAffinity `json:"additionalPodAntiAffinity,omitempty"`

	// AdditionalPodAffinity is passed to the Pods.
	// +optional
	AdditionalPodAffinity *corev1.PodAffinity `json:"additionalPodAffinity,omitempty"`
}
