package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterStatus is what was last seen and decided. Each field has one writer; targetPrimary alone is shared
// between topology and the user.
//
// +kubebuilder:validation:XValidation:rule="(has(self.currentPrimaryGeneration) ? self.currentPrimaryGeneration : 0) == (has(oldSelf.currentPrimaryGeneration) ? oldSelf.currentPrimaryGeneration : 0) || (has(self.currentPrimaryGeneration) && self.currentPrimaryGeneration == (has(oldSelf.currentPrimaryGeneration) ? oldSelf.currentPrimaryGeneration : 0) + 1 && has(self.currentPrimary))",message="currentPrimaryGeneration grows by exactly one, with a promotion"
// +kubebuilder:validation:XValidation:rule=`(has(self.currentPrimary) ? self.currentPrimary : "") == (has(oldSelf.currentPrimary) ? oldSelf.currentPrimary : "") || (has(self.currentPrimaryGeneration) && self.currentPrimaryGeneration == (has(oldSelf.currentPrimaryGeneration) ? oldSelf.currentPrimaryGeneration : 0) + 1)`,message="currentPrimary changes only together with currentPrimaryGeneration"
type ClusterStatus struct {
	// ObservedGeneration is the metadata.generation that the phase and conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Flavor and Image are what the instances run.
	// +optional
	Flavor Flavor `json:"flavor,omitempty"`
	// +optional
	Image string `json:"image,omitempty"`

	// Instances is how many instances exist, ReadyInstances how many of them are Ready. The API server fills in a
	// 0 that a writer leaves out: so it is shown, and no writer sends a field that is another's.
	// +kubebuilder:default=0
	// +optional
	Instances int32 `json:"instances,omitempty"`
	// +kubebuilder:default=0
	// +optional
	ReadyInstances int32 `json:"readyInstances,omitempty"`
	// LabelSelector selects the instances' Pods, for the scale subresource.
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`
	// PrimaryKnows are the instances that the current primary is known to know of, itself among them. While the API
	// server cannot be reached it may go on by their word that none of them takes its lease; whoever is not among them
	// was not asked, and is not promoted while the lease has merely expired.
	// +optional
	// +listType=set
	PrimaryKnows []string `json:"primaryKnows,omitempty"`
	// InstanceNames are the instances that exist, by ordinal.
	// +optional
	InstanceNames []string `json:"instanceNames,omitempty"`
	// LatestGeneratedNode is the highest ordinal ever given to an instance.
	// +optional
	LatestGeneratedNode int32 `json:"latestGeneratedNode,omitempty"`

	// CurrentPrimary is the instance that holds the role. The promoted instance writes it, in one update
	// with the generation, the timestamp, promotionGTIDExecuted and currentPrimaryServerUUID.
	// +optional
	CurrentPrimary string `json:"currentPrimary,omitempty"`
	// +optional
	CurrentPrimaryTimestamp *metav1.MicroTime `json:"currentPrimaryTimestamp,omitempty"`
	// CurrentPrimaryGeneration counts promotions.
	// +optional
	CurrentPrimaryGeneration int64 `json:"currentPrimaryGeneration,omitempty"`
	// PromotionGTIDExecuted is what the primary had executed when it was promoted.
	// +optional
	PromotionGTIDExecuted string `json:"promotionGTIDExecuted,omitempty"`
	// CurrentPrimaryServerUUID is the author of the transactions that the current primary commits.
	// +optional
	CurrentPrimaryServerUUID string `json:"currentPrimaryServerUUID,omitempty"`

	// TargetPrimary is the instance that should be the primary. A user asks for a switchover by writing it
	// (kubectl patch --subresource=status, or kubectl cnmsql promote). The operator fills the timestamp.
	// +optional
	TargetPrimary string `json:"targetPrimary,omitempty"`
	// +optional
	TargetPrimaryTimestamp *metav1.MicroTime `json:"targetPrimaryTimestamp,omitempty"`
	// PrimaryTransition is the one change of primary that is under way.
	// +optional
	PrimaryTransition *PrimaryTransition `json:"primaryTransition,omitempty"`

	// PrimaryFailingSince is when the current primary was first seen to have failed; cleared only by a
	// healthy, writable primary.
	// +optional
	PrimaryFailingSince *metav1.MicroTime `json:"primaryFailingSince,omitempty"`
	// PrimaryOpening is the run of the server that a failed primary was last seen with; cleared with
	// primaryFailingSince. Each run has its own time to open for writes.
	// +optional
	PrimaryOpening *PrimaryOpening `json:"primaryOpening,omitempty"`
	// PrimaryHealthySince is the start of the present primary's last healthy stretch without a break.
	// +optional
	PrimaryHealthySince *metav1.MicroTime `json:"primaryHealthySince,omitempty"`
	// LastFailoverTimestamp, LastFailoverTarget and LastFailoverGeneration are of the last automatic promotion that
	// was completed. They are kept a second time in annotations of the Cluster.
	// +optional
	LastFailoverTimestamp *metav1.Time `json:"lastFailoverTimestamp,omitempty"`
	// +optional
	LastFailoverTarget string `json:"lastFailoverTarget,omitempty"`
	// +optional
	LastFailoverGeneration int64 `json:"lastFailoverGeneration,omitempty"`
	// LastFailoverSettled is when that failover had settled (failoverPolicy.primaryStabilityWindow), if a later
	// break of the primary's health would hide it.
	// +optional
	LastFailoverSettled *metav1.Time `json:"lastFailoverSettled,omitempty"`
	// LastElection tells who was considered for the last automatic promotion, and why not chosen.
	// +optional
	LastElection *Election `json:"lastElection,omitempty"`

	// Failback tells of a move of the role to a preferred instance, or away from a cordoned node, that had to be
	// ended; it is tried again later.
	// +optional
	Failback *FailbackStatus `json:"failback,omitempty"`

	// PrimaryLease is the holder of the Lease <cluster>-primary; written when it changes.
	// +optional
	PrimaryLease *PrimaryLeaseStatus `json:"primaryLease,omitempty"`

	// SemiSync is the state of semi-synchronous replication.
	// +optional
	SemiSync *SemiSyncStatus `json:"semiSync,omitempty"`

	// DivergedInstances hold transactions that the primary does not. They are kept read-only and out of
	// every Service until a human re-initialises them; nothing is deleted.
	// +optional
	DivergedInstances []string `json:"divergedInstances,omitempty"`
	// Divergence names those transactions.
	// +listType=map
	// +listMapKey=instance
	// +optional
	Divergence []Divergence `json:"divergence,omitempty"`
	// FencedInstances are those that a person asked to fence, by the annotation mysql.cnmsql.co/fencing or kubectl cnmsql
	// fence: they are in no Service, their servers are stopped or about to be, their Pods run on, and none is promoted.
	// +listType=set
	// +optional
	FencedInstances []string `json:"fencedInstances,omitempty"`
	// ReplicationBrokenInstances are reachable replicas whose replication stopped with an error.
	// +optional
	ReplicationBrokenInstances []string `json:"replicationBrokenInstances,omitempty"`
	// FailedInstances are instances whose Pod or server is not running.
	// +optional
	FailedInstances []string `json:"failedInstances,omitempty"`
	// Provisioning is the progress of instances that are being initialised or cloned.
	// +listType=map
	// +listMapKey=instance
	// +optional
	Provisioning []InstanceProvisioning `json:"provisioning,omitempty"`

	// EstablishedAt is when the Cluster first had a writable primary. Never cleared: from then on no
	// instance is ever initialised empty.
	// +optional
	EstablishedAt *metav1.Time `json:"establishedAt,omitempty"`

	// GTIDExecutedByInstance is the last executed set seen of each instance, refreshed now and then.
	// +optional
	GTIDExecutedByInstance map[string]string `json:"gtidExecutedByInstance,omitempty"`
	// +optional
	GTIDExecutedUpdatedAt *metav1.Time `json:"gtidExecutedUpdatedAt,omitempty"`

	// ReplicationLagByInstance is how many milliseconds each replica was last seen to be behind the primary, by the
	// heartbeat, refreshed now and then; 0 for less than can be measured. Instances of which it is not known are absent.
	// +optional
	ReplicationLagByInstance map[string]int64 `json:"replicationLagByInstance,omitempty"`
	// +optional
	ReplicationLagUpdatedAt *metav1.Time `json:"replicationLagUpdatedAt,omitempty"`

	// Certificates is what cert-manager issued for this Cluster.
	// +optional
	Certificates *CertificatesStatus `json:"certificates,omitempty"`

	// Phase is the state of the whole in one word, PhaseReason in a sentence.
	// +optional
	Phase Phase `json:"phase,omitempty"`
	// +optional
	PhaseReason string `json:"phaseReason,omitempty"`

	// Conditions are Ready, Progressing, Degraded, FailoverBlocked and those of single reconcilers.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// TransitionKind says why the primary changes.
// +kubebuilder:validation:Enum=bootstrap;switchover;failover
type TransitionKind string

// The kinds of transition.
const (
	// TransitionBootstrap makes the first primary of a Cluster.
	TransitionBootstrap TransitionKind = "bootstrap"
	// TransitionSwitchover moves the role from a living primary, which hands over what it executed.
	TransitionSwitchover TransitionKind = "switchover"
	// TransitionFailover replaces a primary that has failed; there is no handoff to wait for.
	TransitionFailover TransitionKind = "failover"
)

// TransitionCause says what led to a change of primary.
// +kubebuilder:validation:Enum=bootstrap;asked;failed;unreachable;fenced;stopping;cordoned;preferred;acceptedLoss;statusLost
type TransitionCause string

// The causes of a transition.
const (
	// CauseBootstrap: the Cluster's first primary.
	CauseBootstrap TransitionCause = "bootstrap"
	// CauseAsked: somebody wrote status.targetPrimary.
	CauseAsked TransitionCause = "asked"
	// CauseFailed: the primary has failed.
	CauseFailed TransitionCause = "failed"
	// CauseUnreachable: the primary lives, and no client reaches it.
	CauseUnreachable TransitionCause = "unreachable"
	// CauseFenced: a person fenced the primary, and its server has stopped.
	CauseFenced TransitionCause = "fenced"
	// CauseStopping: the primary's Pod is being stopped.
	CauseStopping TransitionCause = "stopping"
	// CauseCordoned: no Pod may be placed any more on the primary's node.
	CauseCordoned TransitionCause = "cordoned"
	// CausePreferred: a more preferred instance is fit (failoverPolicy.preferredPrimary).
	CausePreferred TransitionCause = "preferred"
	// CauseAcceptedLoss: a person accepted a stated loss (the annotation mysql.cnmsql.co/accept-loss).
	CauseAcceptedLoss TransitionCause = "acceptedLoss"
	// CauseStatusLost: the status named no primary any more, and the instances showed who is to be it.
	CauseStatusLost TransitionCause = "statusLost"
)

// PrimaryTransition is one change of primary. Instances act on it, never on a raw targetPrimary.
type PrimaryTransition struct {
	// Attempt is a fresh id: a handoff recorded for another attempt does not count.
	Attempt string         `json:"attempt"`
	Kind    TransitionKind `json:"kind"`
	// From is the primary that gives the role up; empty for the first one.
	// +optional
	From string `json:"from,omitempty"`
	// To is the instance that is to be promoted.
	To string `json:"to"`
	// Generation is what currentPrimaryGeneration becomes.
	Generation int64 `json:"generation"`
	// StartedAt is when it was written, Deadline when it is ended at the latest.
	StartedAt metav1.MicroTime `json:"startedAt"`
	// +optional
	Deadline *metav1.MicroTime `json:"deadline,omitempty"`
	// Cause is what led to it, Reason is that in a sentence.
	// +optional
	Cause TransitionCause `json:"cause,omitempty"`
	// +optional
	Reason string `json:"reason,omitempty"`
}

// PrimaryOpening is one run of the server of a primary that does not serve.
type PrimaryOpening struct {
	// Server identifies the run; empty while there is none.
	// +optional
	Server string `json:"server,omitempty"`
	// Since is when this run was first seen.
	Since metav1.MicroTime `json:"since"`
}

// FailbackStatus is a move of the role that nobody asked for and that had to be ended.
type FailbackStatus struct {
	// Instance is where the role was to go, Reason why it did not.
	Instance string `json:"instance"`
	Reason   string `json:"reason"`
	// Attempts counts the tries in this generation, EndedAt is when the last was ended.
	Attempts int32       `json:"attempts"`
	EndedAt  metav1.Time `json:"endedAt"`
}

// Election is who was considered for a promotion.
type Election struct {
	At      metav1.Time `json:"at"`
	Verdict string      `json:"verdict"`
	// +optional
	Winner string `json:"winner,omitempty"`
	// +optional
	Candidates []Candidate `json:"candidates,omitempty"`
}

// Candidate is one instance in an election.
type Candidate struct {
	Instance string `json:"instance"`
	Eligible bool   `json:"eligible"`
	// Reason is why it was not eligible or not chosen.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Missing counts transactions that the primary was last known to have and this instance does not hold.
	// +optional
	Missing int64 `json:"missing,omitempty"`
}

// PrimaryLeaseStatus is who holds the primary lease.
type PrimaryLeaseStatus struct {
	// Holder is <instance>/<Pod UID>; empty when the lease is free.
	// +optional
	Holder string `json:"holder"` // always written: an empty object, applied, would become null, which is refused
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// SemiSyncStatus is the state of semi-synchronous replication.
type SemiSyncStatus struct {
	// Configured is spec.minSyncReplicas.
	Configured int32 `json:"configured"`
	// Effective is the number of acknowledgements that the primary now waits for.
	Effective int32 `json:"effective"`
	// Ackers are the replicas that acknowledge.
	// +optional
	Ackers []string `json:"ackers,omitempty"`
	// Active is what the primary's server says: false while it commits without acknowledgements.
	Active bool `json:"active"`
}

// Divergence is what an instance holds that the primary does not.
type Divergence struct {
	Instance string `json:"instance"`
	// GTIDSet holds the errant transactions, Count how many they are.
	GTIDSet string `json:"gtidSet"`
	Count   int64  `json:"count"`
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
}

// InstanceProvisioning is how far the making of an instance's data is.
type InstanceProvisioning struct {
	Instance string `json:"instance"`
	// Step is what is being done: initialising, joining, cloning.
	Step string `json:"step"`
	// Percent is how much of a clone is copied.
	// +optional
	Percent int32 `json:"percent,omitempty"`
	// Attempts counts the tries, LastError is why the last one failed.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// +optional
	LastError string `json:"lastError,omitempty"`
}

// CertificatesStatus is what cert-manager issued.
type CertificatesStatus struct {
	// Expirations are the ends of validity (RFC 3339) by Secret.
	// +optional
	Expirations map[string]string `json:"expirations,omitempty"`
}

// Phase is the state of a Cluster in one word.
type Phase string

// The phases.
const (
	PhaseProvisioning   Phase = "Provisioning"
	PhaseReady          Phase = "Ready"
	PhaseSwitchover     Phase = "Switchover"
	PhaseFailingOver    Phase = "FailingOver"
	PhaseDegraded       Phase = "Degraded"
	PhaseBlocked        Phase = "Blocked"
	PhaseWaitingForUser Phase = "WaitingForUser"
	PhaseDeleting       Phase = "Deleting"
)
