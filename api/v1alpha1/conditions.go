package v1alpha1

// The types of condition on a Cluster. All but FailoverBlocked, Progressing and Degraded are good when True.
const (
	// ConditionReady: a writable primary exists and every instance is Ready.
	ConditionReady = "Ready"
	// ConditionProgressing: instances are being made, or the primary is being changed.
	ConditionProgressing = "Progressing"
	// ConditionDegraded: the Cluster works with less than it should.
	ConditionDegraded = "Degraded"
	// ConditionFailoverBlocked: the primary has failed and no other may be promoted; the message says why and what would let it go on.
	ConditionFailoverBlocked = "FailoverBlocked"
	// ConditionSpecValid: the specification can be carried out; False names the field.
	ConditionSpecValid = "SpecValid"
	// ConditionCredentialsReady: the Secrets with passwords exist and are complete.
	ConditionCredentialsReady = "CredentialsReady"
	// ConditionCertificatesReady: cert-manager has issued every certificate.
	ConditionCertificatesReady = "CertificatesReady"
	// ConditionServicesReady: the Services exist as they should.
	ConditionServicesReady = "ServicesReady"
	// ConditionLeaseReady: the primary Lease and each instance's identity (ServiceAccount, Role, RoleBinding) exist as
	// they should. Without them no instance can take its role.
	ConditionLeaseReady = "LeaseReady"
	// ConditionSemiSyncReady: semi-synchronous replication works as configured.
	ConditionSemiSyncReady = "SemiSyncReady"
	// ConditionFencingReady: what the annotation mysql.cnmsql.co/fencing asks for is understood; the message says who is fenced.
	// It is not about whether anybody is.
	ConditionFencingReady = "FencingReady"
	// ConditionUpToDate: every Pod was made from the present specification.
	ConditionUpToDate = "UpToDate"
)

// Reasons of conditions.
const (
	ReasonHealthy                 = "Healthy"
	ReasonProvisioning            = "Provisioning"
	ReasonNoPrimary               = "NoPrimary"
	ReasonSwitchover              = "Switchover"
	ReasonFailingOver             = "FailingOver"
	ReasonInstancesNotReady       = "InstancesNotReady"
	ReasonImagePull               = "ImagePullFailed"
	ReasonPodUnschedulable        = "PodUnschedulable"
	ReasonVolumeNotBound          = "VolumeNotBound"
	ReasonServerDoesNotStart      = "ServerDoesNotStart"
	ReasonReplicationBroken       = "ReplicationBroken"
	ReasonDiverged                = "Diverged"
	ReasonPrimaryUnreachable      = "PrimaryUnreachable"
	ReasonPrimaryFailed           = "PrimaryFailed"
	ReasonNoSafeCandidate         = "NoSafeCandidate"
	ReasonFailoverBraked          = "MinTimeBetweenFailovers"
	ReasonHistoryUnreadable       = "FailoverHistoryUnreadable"
	ReasonWitnessesMissing        = "WitnessesMissing"
	ReasonBootstrapRefused        = "BootstrapRefused"
	ReasonLeaseHeld               = "LeaseHeld"
	ReasonNotFailing              = "NotFailing"
	ReasonValid                   = "Valid"
	ReasonInvalid                 = "Invalid"
	ReasonReconciled              = "Reconciled"
	ReasonSecretMissing           = "CredentialSecretMissing"
	ReasonSecretIncomplete        = "CredentialSecretIncomplete"
	ReasonCertManagerMissing      = "CertManagerMissing"
	ReasonCertificatePending      = "CertificatePending"
	ReasonForeignObject           = "ForeignObject"
	ReasonApplyFailed             = "ApplyFailed"
	ReasonSemiSyncOff             = "SemiSyncOff"
	ReasonSemiSyncStalled         = "SemiSyncStalled"
	ReasonSemiSyncLowered         = "SemiSyncLowered"
	ReasonSemiSyncNotConfigured   = "NotConfigured"
	ReasonPodsOutdated            = "PodsOutdated"
	ReasonVolumeNotWritable       = "VolumeNotWritable"
	ReasonBehindMaxReadyLag       = "BehindMaxReadyLag"
	ReasonFenced                  = "InstanceFenced"
	ReasonNoneFenced              = "NoneFenced"
	ReasonUnknownInstance         = "UnknownInstance"
	ReasonConfigurationNotApplied = "ConfigurationNotApplied"
)

// Reasons of events. Their messages are stable, so that events aggregate.
const (
	EventInstanceCreated       = "InstanceCreated"
	EventInstanceDeleted       = "InstanceDeleted"
	EventInstanceReplaced      = "InstanceReplaced"
	EventEstablished           = "Established"
	EventSwitchoverStarted     = "SwitchoverStarted"
	EventSwitchoverRefused     = "SwitchoverRefused"
	EventSwitchoverAborted     = "SwitchoverAborted"
	EventFailoverStarted       = "FailoverStarted"
	EventFailoverBlocked       = "FailoverBlocked"
	EventHistoryDropped        = "FailoverHistoryDropped"
	EventLossAccepted          = "LossAccepted"
	EventAcceptLossRefused     = "AcceptLossRefused"
	EventPromoted              = "Promoted"
	EventPrimaryFailing        = "PrimaryFailing"
	EventPrimaryRecovered      = "PrimaryRecovered"
	EventPrimaryUnreachable    = "PrimaryUnreachable"
	EventDiverged              = "Diverged"
	EventReplicationBroken     = "ReplicationBroken"
	EventInvalidSpec           = "InvalidSpec"
	EventProvisioningFailed    = "ProvisioningFailed"
	EventForeignObject         = "ForeignObject"
	EventApplyFailed           = "ApplyFailed"
	EventCommitsLetGo          = "CommitsLetGo"
	EventVolumeNotWritable     = "VolumeNotWritable"
	EventFenced                = "InstanceFenced"
	EventUnfenced              = "InstanceUnfenced"
	EventFencingRefused        = "FencingRefused"
	EventCredentialsIncomplete = "CredentialsIncomplete"
)
