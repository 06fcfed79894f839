package view

import "time"

// Status is everything that `kubectl cnmsql status` tells; its JSON is for programs. A nil pointer and the
// word "unknown" both say that it could not be found out.
type Status struct {
	Namespace string `json:"namespace"`
	Cluster   string `json:"cluster"`
	Flavor    string `json:"flavor"`
	Image     string `json:"image"`
	// Phase is the state in one word, Reason in a sentence.
	Phase  string `json:"phase"`
	Reason string `json:"reason"`
	// UpToDate is false while the status does not speak of the present specification yet.
	UpToDate bool `json:"upToDate"`

	Primary    Primary     `json:"primary"`
	Transition *Transition `json:"transition"`
	Lease      Lease       `json:"lease"`
	SemiSync   *SemiSync   `json:"semiSync"`

	// Wanted is how many instances there should be, Ready how many are Ready; nil when Pods cannot be read.
	Wanted    int32      `json:"wanted"`
	Ready     *int32     `json:"ready"`
	Instances []Instance `json:"instances"`
	// RecordedAt is when the instances' executed sets were last recorded.
	RecordedAt *time.Time `json:"recordedAt"`

	Conditions []Condition `json:"conditions"`
	// Notes are what could not be read, and why.
	Notes []string `json:"notes"`
}

// Primary is who holds the role.
type Primary struct {
	// Instance is empty while there is none.
	Instance   string     `json:"instance"`
	Since      *time.Time `json:"since"`
	Generation int64      `json:"generation"`
	// Why it became the primary, in words.
	Why string `json:"why"`
	// FailingSince is when it was first seen to have failed; nil while it has not.
	FailingSince *time.Time `json:"failingSince"`
	// Asked is the instance that a user wants instead; empty when none.
	Asked string `json:"asked"`
}

// Transition is a change of primary under way.
type Transition struct {
	Kind       string     `json:"kind"`
	From       string     `json:"from"`
	To         string     `json:"to"`
	Generation int64      `json:"generation"`
	Since      time.Time  `json:"since"`
	Deadline   *time.Time `json:"deadline"`
	Why        string     `json:"why"`
}

// Lease is who holds the primary lease.
type Lease struct {
	// Holder is an instance; empty when the lease is free or not known.
	Holder string     `json:"holder"`
	Since  *time.Time `json:"since"`
	// Known is false while the operator has not seen the lease.
	Known bool `json:"known"`
	// FormerPod tells that the holder is not the instance's present Pod.
	FormerPod bool `json:"formerPod"`
}

// SemiSync is the state of semi-synchronous replication; nil in Status when it is off.
type SemiSync struct {
	Wanted  int32    `json:"wanted"`
	WaitFor int32    `json:"waitFor"`
	Active  bool     `json:"active"`
	Ackers  []string `json:"ackers"`
	// Known is false while the operator has not reported it.
	Known bool `json:"known"`
}

// Instance is one server.
type Instance struct {
	Name string `json:"name"`
	// Role is primary, replica, none (in no Service) or unknown.
	Role string `json:"role"`
	// Pod is the state of its Pod: Running, Pending, missing, unknown, …
	Pod string `json:"pod"`
	// Ready is nil when it is not known.
	Ready *bool `json:"ready"`
	// Source is the instance that it replicates from, empty for none or not known.
	Source string `json:"source"`
	// Behind counts transactions that the primary had and this instance had not executed, when both were
	// last recorded; nil when it is not known.
	Behind *uint64 `json:"behind"`
	// LagMillis is how far it was behind by the heartbeat, as last recorded, 0 for less than can be measured; nil when it
	// is not known.
	LagMillis *int64 `json:"lagMillis"`
	// Executed is its recorded set.
	Executed string `json:"executed"`
	// Acknowledges tells that commits wait for it.
	Acknowledges bool       `json:"acknowledges"`
	Node         string     `json:"node"`
	Created      *time.Time `json:"created"`
	Restarts     int32      `json:"restarts"`
	// Trouble is what is wrong with it, in words.
	Trouble []string `json:"trouble"`
}

// Condition is one of the Cluster's conditions.
type Condition struct {
	Type    string    `json:"type"`
	Status  string    `json:"status"`
	Reason  string    `json:"reason"`
	Message string    `json:"message"`
	Since   time.Time `json:"since"`
	// Good tells that this is how it should be.
	Good bool `json:"good"`
}
