package role

import "cnmsql.co/operator/instance/gtid"

// StepKind names one thing to do.
type StepKind string

// The steps. Rest and Wait change nothing: with Rest all is as it should be, with Wait something else must
// happen first.
const (
	Rest StepKind = "rest"
	Wait StepKind = "wait"
	// Demote makes a server read-only that is not supposed to be writable, or whose commits wait in vain, ending client
	// sessions.
	Demote StepKind = "demote"
	// ReleaseLease gives the lease back, with Step.Executed as the handoff for Step.Attempt when given.
	ReleaseLease StepKind = "release lease"
	AcquireLease StepKind = "acquire lease"
	// AskPeers asks every other instance what it holds, then decides again on the same facts.
	AskPeers StepKind = "ask peers"
	// Confirm reads the Cluster and the Lease from the API server, then decides again.
	Confirm      StepKind = "confirm"
	StopReceiver StepKind = "stop receiver"
	StopReplica  StepKind = "stop replica"
	StartReplica StepKind = "start replica"
	StartApplier StepKind = "start applier"
	ResetReplica StepKind = "reset replica"
	// Follow leaves the present source for Step.Source, when everything received from it is applied and no more
	// than Step.Executed, which was compared with the new source.
	Follow StepKind = "follow"
	// SourceSemiSync makes commits wait for acknowledgements as configured, or not at all.
	SourceSemiSync StepKind = "semi-sync as source"
	// Acknowledge switches the replica side of semi-synchronous replication on.
	Acknowledge StepKind = "acknowledge"
	// ReplicaSemiSync switches the source side off and the replica side as configured.
	ReplicaSemiSync StepKind = "semi-sync as replica"
	// Claim writes currentPrimary, the generation and Step.Executed to the Cluster.
	Claim      StepKind = "claim"
	OpenWrites StepKind = "open writes"
	// RecordReassert writes on the Lease that a server is opened again which somebody else made read-only.
	RecordReassert StepKind = "record the re-assert"
	// StopServer ends the server cleanly and keeps it stopped; KillServer does so without a shutdown. StartServer ends
	// that.
	StopServer  StepKind = "stop server"
	KillServer  StepKind = "kill server"
	StartServer StepKind = "start server"
	// AdmitClients lets clients connect that a starting or demoted server refuses. OpenWrites does so, too.
	AdmitClients StepKind = "admit clients"
)

// Step is one thing to do, with what it needs.
type Step struct {
	Kind StepKind
	// Source is the instance to follow.
	Source string
	// Executed accompanies Claim, Follow and ReleaseLease: what this server has executed. Nil on a release without
	// handoff.
	Executed *gtid.Set
	// Attempt is the transition that Claim and ReleaseLease belong to.
	Attempt string
}

// Decision is a step with what is to be said about it.
type Decision struct {
	Step Step
	// Role is primary, replica or none.
	Role string
	// Why is a sentence for people: what is being done, or what is waited for.
	Why string
	// ResumeRefused is why a former primary may not open for writes by itself.
	ResumeRefused string
	// PromotionRefused is why the target of a transition does not take the role.
	PromotionRefused        string
	PromotionRefusedAttempt string
	// Errant is what this instance holds and the current primary does not.
	Errant gtid.Set
}

// Values of Decision.Role.
const (
	Primary = "primary"
	Replica = "replica"
	None    = "none"
)
