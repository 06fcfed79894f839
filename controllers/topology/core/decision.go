package core

import (
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Decision is what one pass came to.
type Decision struct {
	// Rule is the name of the rule about the primary that spoke.
	Rule string
	// Refresh asks for a Snapshot whose reports were all read anew; nothing else of the decision counts.
	Refresh bool
	// First are actions that rest on the status as it is stored, and are not to wait until it is written anew.
	First []Action
	// Status is what the status becomes. It is written before any other action, and only if it differs.
	Status api.ClusterStatus
	// Actions are carried out in order. One that fails ends those of its instance; and after a label that could
	// not be changed no primary's label is given.
	Actions []Action
	// Events tell of what the status now says.
	Events []Event
	// Logs are lines of the log whose message is a contract.
	Logs []Log
	// Promoted is the promotion that this decision closes the books on; nil when it closes none.
	Promoted *Promotion
	// Brake is how long failoverPolicy.minTimeBetweenFailovers would now hold a failover back.
	Brake time.Duration
	// Recheck is when to look again although nothing happened; zero for never.
	Recheck time.Duration
}

// ActionKind names a thing that the operator does.
type ActionKind string

// The kinds of action.
const (
	CreateVolumes ActionKind = "create volumes"
	CreatePod     ActionKind = "create Pod"
	DeletePod     ActionKind = "delete Pod"
	LabelPod      ActionKind = "label Pod"
	// RecordFailover rests on the status as it is stored, and is done also when it cannot be written anew.
	RecordFailover ActionKind = "record failover"
	// ClearAcceptLoss removes the annotation by which a person accepted a loss, if it is still the one that was read.
	ClearAcceptLoss ActionKind = "clear accept-loss"
)

// Action is one thing to do. It may be repeated.
type Action struct {
	Kind     ActionKind
	Instance string
	// PodUID is the Pod that DeletePod and LabelPod mean: any other of the same name is left alone.
	PodUID string
	// Role and Routable are what LabelPod sets; an empty role removes the label.
	Role     string
	Routable bool
	// Record is what RecordFailover writes into the Cluster's annotations; nil removes it.
	Record *FailoverRecord
	// Value is what ClearAcceptLoss removes.
	Value string
	// Why is for the log.
	Why string
	// Done is told when it is done; nil for nothing.
	Done *Event
}

// Promotion is a change of primary that was completed.
type Promotion struct {
	Cause api.TransitionCause
	// Took is how long there was no primary that served: from when the former one was first seen to have failed, or
	// for a planned change from its transition, to the claim of the role as the operator saw it.
	Took time.Duration
}

// Log is a line of the log.
type Log struct {
	Message string
	// Fields are names and values in turn.
	Fields []any
}

// Event is something that happened, for people.
type Event struct {
	Warning bool
	Reason  string
	// Action is what the operator did or declined to do, in one word.
	Message string
}
