package core

import (
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

// Snapshot is everything that a rule may look at, read before anything is decided. It can be written down and read
// again; see Dump.
type Snapshot struct {
	// Now is the operator's clock. It is compared only with times that an operator wrote, maybe on another machine.
	Now time.Time `json:"now"`
	// NewAttempt is a fresh id for the transition that this pass may start.
	NewAttempt string `json:"newAttempt"`
	// Cluster is the object as read, with its defaults filled in memory.
	Cluster *api.Cluster `json:"cluster"`
	// Instances are all that the status, a Pod or a volume names, by ordinal.
	Instances []Instance `json:"instances"`
	Lease     Lease      `json:"lease"`
	// Fresh tells that every report was asked for anew in this pass, after the Lease was looked at.
	Fresh bool `json:"fresh"`
	// Patience is after how long the next thing that an instance waits for will count as its trouble; zero when
	// it waits for nothing.
	Patience time.Duration `json:"-"`
	// SpecProblem is why the specification cannot be carried out; empty when it can.
	SpecProblem string `json:"specProblem,omitempty"`
	// NotReadyYet is what instances need before their Pods can be made and is not there: passwords or
	// certificates. Empty when all is there.
	NotReadyYet string `json:"notReadyYet,omitempty"`
}

// Instance is one instance as seen by the operator.
type Instance struct {
	Name    string `json:"name"`
	Ordinal int32  `json:"ordinal"`
	// Pod is nil when there is none.
	Pod *Pod `json:"pod,omitempty"`
	// Volumes are the claims that exist for it, with the data first; Missing names those that do not.
	Volumes        []Volume `json:"volumes,omitempty"`
	MissingVolumes []string `json:"missingVolumes,omitempty"`
	// Refused is what the API server refuses to do for it and what to do about that, with RefusedReason as a
	// condition's reason; empty when nothing is refused, or has only just been.
	Refused       string `json:"refused,omitempty"`
	RefusedReason string `json:"refusedReason,omitempty"`
	// CertificateReady tells that its server certificate exists.
	CertificateReady bool `json:"certificateReady"`
	// Report is what its manager last said; nil when it is silent. Age is how long ago that arrived.
	Report *protocol.Report `json:"report,omitempty"`
	Age    time.Duration    `json:"-"`
	// Asked tells that its manager was asked since its Pod runs: only then silence means anything.
	Asked bool `json:"asked"`
}

// Pod is what matters of a Pod.
type Pod struct {
	UID         string `json:"uid"`
	Terminating bool   `json:"terminating,omitempty"`
	// Ended tells that it is Failed or Succeeded.
	Ended string `json:"ended,omitempty"`
	// Ready is the Pod's condition, never that of its containers.
	Ready bool `json:"ready"`
	// Cordoned tells that its node takes no more Pods.
	Cordoned bool `json:"cordoned,omitempty"`
	// Running tells that the server's container is running now.
	Running bool `json:"running"`
	// Role and Routable are its labels.
	Role     string `json:"role,omitempty"`
	Routable bool   `json:"routable,omitempty"`
	// Outdated tells that it was made from another specification than the present one.
	Outdated bool `json:"outdated,omitempty"`
	// Trouble is why it does not run, in words, with TroubleReason as a condition's reason; empty when it
	// runs or nothing is wrong yet.
	Trouble       string `json:"trouble,omitempty"`
	TroubleReason string `json:"troubleReason,omitempty"`
}

// Volume is what matters of a volume claim.
type Volume struct {
	Name string `json:"name"`
	// Ours tells that it was made for this very Cluster, not for an earlier one of its name.
	Ours        bool `json:"ours"`
	Terminating bool `json:"terminating,omitempty"`
	// Trouble is why it is not bound; empty when it is, or nothing is wrong yet.
	Trouble string `json:"trouble,omitempty"`
	// Small tells how it is smaller than the specification asks for, in words; empty when it is not.
	Small string `json:"small,omitempty"`
}

// Lease is the primary lease as this operator observed it.
type Lease struct {
	// Known is false while the object does not exist or was never read.
	Known  bool   `json:"known"`
	Holder string `json:"holder,omitempty"`
	// Unchanged is how long ago this operator saw the record change, by its own monotonic clock.
	Unchanged time.Duration `json:"-"`
	// Handoff is what the last holder had executed when it was read-only, HandoffAttempt the transition it
	// was recorded for; nil when there is none or it cannot be read.
	Handoff        *gtid.Set `json:"handoff,omitempty"`
	HandoffAttempt string    `json:"handoffAttempt,omitempty"`
}

// Expired tells that the lease was watched for a whole TTL without a renewal.
func (l Lease) Expired() bool { return l.Known && l.Holder != "" && l.Unchanged >= api.PrimaryLeaseTTL }

// Free tells that nobody may write by this lease.
func (l Lease) Free() bool { return l.Known && (l.Holder == "" || l.Expired()) }

// HeldBy tells that this instance holds the lease and it has not expired.
func (l Lease) HeldBy(instance string) bool {
	return l.Known && l.Holder != "" && !l.Expired() && api.HolderInstance(l.Holder) == instance
}

// Remaining is how long it takes until the lease has expired if it is not renewed.
func (l Lease) Remaining() time.Duration { return max(api.PrimaryLeaseTTL-l.Unchanged, 0) }

// instance finds an instance by name; nil when there is none.
func (s *Snapshot) instance(name string) *Instance {
	for n := range s.Instances {
		if s.Instances[n].Name == name {
			return &s.Instances[n]
		}
	}
	return nil
}

// running tells that the instance's server answers its manager.
func (i *Instance) running() bool {
	return i != nil && i.Report != nil && i.Report.Server.State == protocol.ServerRunning && i.Report.MySQL != nil
}

// joined tells that the instance has its data.
func (i *Instance) joined() bool {
	return i != nil && i.Report != nil && i.Report.Provision == nil
}

// writable tells that the instance reports itself as the writable primary of this generation.
func (i *Instance) writable(generation int64) bool {
	return i.running() && i.Report.Role.Generation == generation && i.Report.MySQL.Writable()
}

// noRoom says why the instance's server cannot write to its volumes; empty when it can, or nobody knows.
func (i *Instance) noRoom() string {
	if i == nil {
		return ""
	}
	return i.Report.NoRoom()
}

// source is the instance that this one replicates from; empty when from none.
func (i *Instance) source() string {
	if !i.running() || i.Report.MySQL.Replication == nil {
		return ""
	}
	return protocol.HostInstance(i.Report.MySQL.Replication.SourceHost)
}

// going tells that the instance's Pod is on its way out.
func (i *Instance) going() bool { return i != nil && i.Pod != nil && i.Pod.Terminating }

// coming tells that the instance's Pod or its server is being started, so that it will answer in a moment.
func (i *Instance) coming() bool {
	switch {
	case i == nil || i.Pod == nil || i.going() || i.Pod.Ended != "" || i.Pod.Trouble != "":
		return false
	case i.Report == nil:
		return !i.Pod.Running || !i.Pod.Ready
	case i.Report.Server.State == protocol.ServerProvisioning:
		// Until the manager has looked at its data.
		return i.Report.Provision != nil && i.Report.Provision.Step == protocol.StepWaiting && i.Report.Provision.Attempts == 0
	}
	return i.Report.Server.State == protocol.ServerStarting
}

// silent tells that the instance was asked and did not answer.
func (i *Instance) silent() bool { return i != nil && i.Report == nil && i.Asked }
