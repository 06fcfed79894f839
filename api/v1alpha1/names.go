package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// MaxClusterNameLength is the longest name a Cluster may have: "-replication-tls" is the longest suffix
// that is derived from it, and a derived name has at most 63 characters.
const MaxClusterNameLength = 46

// Labels on everything that the operator makes.
const (
	// LabelCluster holds the Cluster's name.
	LabelCluster = "mysql.cnmsql.co/cluster"
	// LabelInstance holds the instance's name.
	LabelInstance = "mysql.cnmsql.co/instance"
	// LabelRole holds RolePrimary or RoleReplica, after the fact.
	LabelRole = "mysql.cnmsql.co/role"
	// LabelRoutable is "true" on Pods that Services may lead to.
	LabelRoutable = "mysql.cnmsql.co/routable"
)

// Values of LabelRole.
const (
	RolePrimary = "primary"
	RoleReplica = "replica"
)

// Annotations.
const (
	// AnnotationTemplateHash on a Pod is the hash of the template it was made from.
	AnnotationTemplateHash = "mysql.cnmsql.co/template-hash"
	// AnnotationSpecHash on other objects is the hash of what was last applied.
	AnnotationSpecHash = "mysql.cnmsql.co/spec-hash"
	// AnnotationHandoffGTID on the primary Lease is what the last holder had executed when it had become read-only.
	AnnotationHandoffGTID = "mysql.cnmsql.co/handoff-gtid"
	// AnnotationLastFailover on the Cluster is when the last automatic promotion was completed (RFC 3339, seconds,
	// UTC), AnnotationLastFailoverTarget who was promoted, AnnotationLastFailoverGeneration in which generation.
	// They are the second copy of what the status says; the operator alone writes them.
	AnnotationLastFailover           = "mysql.cnmsql.co/last-failover"
	AnnotationLastFailoverTarget     = "mysql.cnmsql.co/last-failover-target"
	AnnotationLastFailoverGeneration = "mysql.cnmsql.co/last-failover-generation"
	// AnnotationAcceptLoss on the Cluster is a person's decision where no instance may be promoted safely:
	// "<instance>=<GTID set>" promotes that instance if no more than those transactions are lost by it. The operator
	// removes it once it was followed or refused.
	AnnotationAcceptLoss = "mysql.cnmsql.co/accept-loss"
	// AnnotationFencing on the Cluster names the instances that are fenced, separated by commas. On a Pod, "true" asks for
	// its instance; the operator moves that to the Cluster, where it outlives the Pod.
	AnnotationFencing = "mysql.cnmsql.co/fencing"
	// AnnotationHandoffAttempt is the transition for which that was recorded.
	AnnotationHandoffAttempt = "mysql.cnmsql.co/handoff-attempt"
	// AnnotationReasserted on the primary Lease is when a primary last opened its running server again that somebody
	// else had made read-only, in RFC 3339.
	AnnotationReasserted = "mysql.cnmsql.co/reasserted"
)

// Ports of an instance.
const (
	PortMySQL   = 3306
	PortControl = 8443
	PortProbes  = 8080
	PortMetrics = 9187
)

// PrimaryLeaseTTL is how long the primary lease lasts without a renewal. The holder's own deadlines lie below
// it, and an observer counts it from when the observer itself last saw the Lease change.
const PrimaryLeaseTTL = 15 * time.Second

// Keys in Secrets.
const (
	SecretKeyUsername = "username"
	SecretKeyPassword = "password"
)

// Accounts of the operator's own in every server.
const (
	AccountControl     = "cnmsql_control"
	AccountReplication = "cnmsql_replication"
)

// Subjects (common names) of the client certificates.
const (
	SubjectControl     = "cnmsql-control"
	SubjectReplication = "cnmsql-replication"
)

// InstanceName is the name of the instance with ordinal n: of its Pod, its volume claim and its headless Service.
func (c *Cluster) InstanceName(n int32) string { return fmt.Sprintf("%s-%d", c.Name, n) }

// InstanceOrdinal is the inverse of InstanceName; false when the name is not one of this Cluster's instances.
func (c *Cluster) InstanceOrdinal(name string) (int32, bool) {
	digits, ok := strings.CutPrefix(name, c.Name+"-")
	if !ok || digits == "" || digits[0] == '0' || digits[0] == '+' {
		return 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil || n < 1 {
		return 0, false
	}
	return int32(n), true
}

// ServerID is the server_id of the instance with ordinal n.
func ServerID(n int32) uint32 { return uint32(n) }

// BinlogPVCName is the claim for an instance's binary logs, where binlogStorage is given.
func BinlogPVCName(instance string) string { return instance + "-binlog" }

// InstanceServiceAccountName is the identity of an instance.
func InstanceServiceAccountName(instance string) string { return instance + "-instance" }

// ServerTLSSecretName is the Secret with an instance's server certificate.
func ServerTLSSecretName(instance string) string { return instance + "-server-tls" }

// ServiceName is the Service for a role, "rw", "ro" or "r", or the additional one of a name.
func (c *Cluster) ServiceName(name string) string { return c.Name + "-" + name }

// PDBName is the disruption budget of the instances.
func (c *Cluster) PDBName() string { return c.Name }

// LeaseName is the Lease of the primary role.
func (c *Cluster) LeaseName() string { return c.Name + "-primary" }

// CASecretName is the Secret with the Cluster's certificate authority.
func (c *Cluster) CASecretName() string { return c.Name + "-ca" }

// ReplicationTLSSecretName is the Secret with the certificate by which replicas log in to the primary.
func (c *Cluster) ReplicationTLSSecretName() string { return c.Name + "-replication-tls" }

// ClientTLSSecretName is the Secret with the certificate by which the operator talks to instances.
func (c *Cluster) ClientTLSSecretName() string { return c.Name + "-client-tls" }

// RootSecretName is the Secret with root's password.
func (c *Cluster) RootSecretName() string {
	if c.Spec.RootPasswordSecret != nil && c.Spec.RootPasswordSecret.Name != "" {
		return c.Spec.RootPasswordSecret.Name
	}
	return c.Name + "-root"
}

// AppSecretName is the Secret with the application's account.
func (c *Cluster) AppSecretName() string {
	if b := c.Spec.Bootstrap; b != nil && b.InitDB != nil && b.InitDB.Secret != nil && b.InitDB.Secret.Name != "" {
		return b.InitDB.Secret.Name
	}
	return c.Name + "-app"
}

// ControlSecretName is the Secret with the instance manager's own account.
func (c *Cluster) ControlSecretName() string { return c.Name + "-control" }

// ReplicationSecretName is the Secret with the replication account.
func (c *Cluster) ReplicationSecretName() string { return c.Name + "-replication" }

// InstanceHost is the name under which other Pods reach an instance: its headless Service.
func (c *Cluster) InstanceHost(instance string) string { return instance + "." + c.Namespace + ".svc" }

// Selector is the labels that all Pods of this Cluster carry.
func (c *Cluster) Selector() map[string]string { return map[string]string{LabelCluster: c.Name} }

// LeaseHolder is an instance's identity on the Lease. A Pod made anew is another holder.
func LeaseHolder(instance, podUID string) string { return instance + "/" + podUID }

// HolderInstance is the instance that a Lease holder names.
func HolderInstance(holder string) string {
	name, _, _ := strings.Cut(holder, "/")
	return name
}
