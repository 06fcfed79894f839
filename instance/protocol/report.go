package protocol

import (
	"fmt"
	"time"

	"cnmsql.co/operator/instance/gtid"
)

// Paths of the control API.
const (
	// PathStatus answers GET with one Report; with ?watch=true with a stream of them as JSON lines: the
	// present one at once, then one per change and at least one every WatchHeartbeat.
	PathStatus = "/v1/status"
	// PathSemiSync takes PUT of a SemiSyncSettings. The operator only.
	PathSemiSync = "/v1/semisync"
	// PathVouch takes POST of a VouchQuestion and answers with a VouchAnswer. Only the instance that the
	// question names.
	PathVouch = "/v1/lease/vouch"
)

// WatchHeartbeat is the longest time between two reports of a watch. A reader that hears nothing for three
// of them takes the instance as silent.
const WatchHeartbeat = 2 * time.Second

// ServerState is the state of the mysqld process.
type ServerState string

// The states of the server.
const (
	// ServerProvisioning: the data directory is being made; clients cannot connect.
	ServerProvisioning ServerState = "provisioning"
	// ServerStarting: mysqld was started and does not accept connections yet.
	ServerStarting ServerState = "starting"
	// ServerRunning: mysqld answers.
	ServerRunning ServerState = "running"
	// ServerDown: mysqld ended and will be started again after a pause, or cannot be started.
	ServerDown ServerState = "down"
	// ServerFenced: the instance is fenced; mysqld was stopped and is not started before that ends.
	ServerFenced ServerState = "fenced"
	// ServerStopping: mysqld is being stopped on purpose.
	ServerStopping ServerState = "stopping"
)

// Report is everything that an instance manager says of itself and its server at one moment. A fact that
// could not be read is absent, never zero: the MySQL part is nil unless the server answered.
type Report struct {
	// Instance and PodUID are who speaks; ClusterUID is of the Cluster it belongs to.
	Instance   string `json:"instance"`
	PodUID     string `json:"podUID"`
	ClusterUID string `json:"clusterUID"`
	// Sequence grows with each report of one manager process, Boot identifies that process.
	Boot     string `json:"boot"`
	Sequence uint64 `json:"sequence"`
	// ReadAt is when the facts were read, by the instance's clock. For people; age is judged by the receiver.
	ReadAt time.Time `json:"readAt"`
	// ManagerVersion is the version of the instance manager.
	ManagerVersion string `json:"managerVersion"`

	Server Server `json:"server"`
	// Volumes are the file systems that the server writes its data and logs to; empty when they could not be read.
	Volumes   []Volume   `json:"volumes,omitempty"`
	Provision *Provision `json:"provision,omitempty"`
	MySQL     *MySQL     `json:"mysql,omitempty"`
	// Heartbeat is absent while the heartbeat is disabled.
	Heartbeat *Heartbeat `json:"heartbeat,omitempty"`
	Role      Role       `json:"role"`
	Lease     Lease      `json:"lease"`
}

// Heartbeat is what an instance knows by the stamps that the primary writes.
type Heartbeat struct {
	// LagMillis is how old the newest stamp of the latest primary is that this replica has applied: by this machine's
	// clock, of a time by the primary's. Absent on the primary, and while there is no stamp or it cannot be read.
	LagMillis *int64 `json:"lagMillis,omitempty"`
	// WaitingMillis is how long a stamp has waited, as other commits may wait for acknowledgements; 0 when none
	// does. StampError is why the last one could not be written. Both are the primary's.
	WaitingMillis int64  `json:"waitingMillis,omitempty"`
	StampError    string `json:"stampError,omitempty"`
}

// Coarse is what is known without what only grows with time.
func (h *Heartbeat) Coarse() *Heartbeat {
	if h == nil {
		return nil
	}
	return &Heartbeat{StampError: h.StampError}
}

// Lag is how far a replica is behind; known is false on a primary, and where there is no reading.
func (r *Report) Lag() (lag time.Duration, known bool) {
	if r == nil || r.Heartbeat == nil || r.Heartbeat.LagMillis == nil {
		return 0, false
	}
	return time.Duration(*r.Heartbeat.LagMillis) * time.Millisecond, true
}

// ConfigInvalid stands in the place of a hash for a specification that no my.cnf can be made from.
const ConfigInvalid = "invalid"

// Server is the state of the mysqld process.
type Server struct {
	State ServerState `json:"state"`
	// Since is when this state began.
	Since time.Time `json:"since"`
	// Version is the server's version text, when known.
	Version string `json:"version,omitempty"`
	// Restarts counts the unintended ends of the server since the manager started.
	Restarts int `json:"restarts,omitempty"`
	// LastExit says how the server last ended, LastError quotes the last error line of its log.
	LastExit  string `json:"lastExit,omitempty"`
	LastError string `json:"lastError,omitempty"`
	// ConfigHash is of the my.cnf that the running server was started with; WantedConfigHash of what the
	// present specification renders to. They differ when a restart is needed.
	ConfigHash       string `json:"configHash,omitempty"`
	WantedConfigHash string `json:"wantedConfigHash,omitempty"`
	// ConfigError is why the present specification renders to no my.cnf for this server; WantedConfigHash is then
	// ConfigInvalid. The server goes on with what it has and would not start again.
	ConfigError string `json:"configError,omitempty"`
}

// Volume is a file system that the server writes to.
type Volume struct {
	// Name is VolumeData, or VolumeBinlog where the binary logs have one of their own.
	Name string `json:"name"`
	// SizeBytes is the whole, AvailableBytes what the server may still use: not what is kept for root.
	SizeBytes      uint64 `json:"sizeBytes"`
	AvailableBytes uint64 `json:"availableBytes"`
	// ReadOnly tells that nothing can be written, as after an error of the disk. Full tells that there is no room; see
	// JudgeVolumes.
	ReadOnly bool `json:"readOnly,omitempty"`
	Full     bool `json:"full,omitempty"`
}

// Names of volumes.
const (
	VolumeData   = "data"
	VolumeBinlog = "binlog"
)

// A volume with less than fullBelow bytes left is full: commits wait for room in the binary log. It stays so until
// roomAgain bytes are free, so that one that others fill and empty, too, is not now this and now that.
const (
	fullBelow = 1 << 20
	roomAgain = 16 << 20
)

// JudgeVolumes tells of volumes as they were read now whether they are full, which depends on what they were before.
func JudgeVolumes(now, before []Volume) []Volume {
	was := map[string]bool{}
	for _, v := range before {
		was[v.Name] = v.Full
	}
	for i, v := range now {
		now[i].Full = v.AvailableBytes < fullBelow || was[v.Name] && v.AvailableBytes < roomAgain
	}
	return now
}

// Trouble says why a server cannot write there; empty when it can.
func (v Volume) Trouble() string {
	switch {
	case v.ReadOnly:
		return "its " + v.Name + " volume is read-only"
	case v.Full:
		return "its " + v.Name + " volume is full"
	}
	return ""
}

// NoRoom says why the server cannot write to its volumes; empty when it can, or nobody knows.
func (r *Report) NoRoom() string {
	if r == nil {
		return ""
	}
	for _, v := range r.Volumes {
		if why := v.Trouble(); why != "" {
			return why
		}
	}
	return ""
}

// CoarseVolumes are volumes in no more detail than whether a server can write there.
func CoarseVolumes(list []Volume) []Volume {
	out := make([]Volume, 0, len(list))
	for _, v := range list {
		out = append(out, Volume{Name: v.Name, ReadOnly: v.ReadOnly, Full: v.Full})
	}
	return out
}

// The steps of a provisioning.
const (
	// StepWaiting: something else must happen first, or it has ended with a refusal.
	StepWaiting = "waiting"
	// StepFenced: nothing is made while the instance is fenced.
	StepFenced = "fenced"
	// StepInitialising: an empty server is made, or filled with what the Cluster asks for.
	StepInitialising = "initialising"
	// StepCloning: the primary's data are copied.
	StepCloning = "cloning"
	// StepRestarting: the server starts on the data that were copied.
	StepRestarting = "restarting"
)

// Provision is the making of the data directory; absent once it is complete.
type Provision struct {
	// Step is one of the steps above, or the reason of a refusal.
	Step string `json:"step"`
	// Percent of a clone, 0 to 100.
	Percent int32 `json:"percent,omitempty"`
	// Stalled tells that no byte of a clone has come for some seconds.
	Stalled bool `json:"stalled,omitempty"`
	// Attempts counts the tries, LastError is why the last one failed.
	Attempts  int32  `json:"attempts,omitempty"`
	LastError string `json:"lastError,omitempty"`
}

// Busy tells that data are being made, or kept from that by a person, however long it takes: who makes them bounds it.
func (p *Provision) Busy() bool {
	if p == nil {
		return false
	}
	switch p.Step {
	case StepInitialising, StepCloning, StepRestarting, StepFenced:
		return true
	}
	return false
}

// MySQL is what the running server answered.
type MySQL struct {
	ServerUUID string `json:"serverUUID"`
	// ReadOnly and SuperReadOnly are the server's variables.
	ReadOnly      bool `json:"readOnly"`
	SuperReadOnly bool `json:"superReadOnly"`
	// Offline tells that the server refuses the sessions of clients.
	Offline bool `json:"offline,omitempty"`
	// Executed is gtid_executed, Purged gtid_purged.
	Executed gtid.Set `json:"executed"`
	Purged   gtid.Set `json:"purged"`
	// Replication is the state of the channel; nil when none is configured.
	Replication *Replication `json:"replication,omitempty"`
	SemiSync    SemiSync     `json:"semiSync"`
}

// Writable tells whether an ordinary client may write.
func (m *MySQL) Writable() bool { return m != nil && !m.ReadOnly && !m.SuperReadOnly }

// Held is everything the server has, applied or not: the answer to every question "how far is it?".
func (m *MySQL) Held() gtid.Set {
	if m == nil {
		return gtid.Set{}
	}
	if m.Replication == nil {
		return m.Executed
	}
	return m.Executed.Union(m.Replication.Received)
}

// Unapplied is what was received and is not executed.
func (m *MySQL) Unapplied() gtid.Set {
	if m == nil || m.Replication == nil {
		return gtid.Set{}
	}
	return m.Replication.Received.Minus(m.Executed)
}

// Replication is the state of the replication channel.
type Replication struct {
	SourceHost string `json:"sourceHost"`
	// SourceUUID is empty until the first connection.
	SourceUUID string `json:"sourceUUID,omitempty"`
	// IORunning tells that the receiver runs, Connected that it has a live connection to the source.
	IORunning  bool `json:"ioRunning"`
	Connected  bool `json:"connected"`
	SQLRunning bool `json:"sqlRunning"`

	IOErrno  int    `json:"ioErrno,omitempty"`
	IOError  string `json:"ioError,omitempty"`
	SQLErrno int    `json:"sqlErrno,omitempty"`
	SQLError string `json:"sqlError,omitempty"`

	// Received is what the relay log holds or held since replication was configured.
	Received gtid.Set `json:"received"`
	// HeartbeatAgeMillis is how long ago the source last sent anything, by the replica's clock; -1 when never.
	HeartbeatAgeMillis int64 `json:"heartbeatAgeMillis"`
	// SecondsBehind is the server's own figure, nil when it says NULL.
	SecondsBehind *int64 `json:"secondsBehind,omitempty"`
}

// Broken tells whether the channel stopped with an error that does not go away by waiting: any applier
// error, or a receiver that gave up.
func (r *Replication) Broken() bool {
	return r != nil && (r.SQLErrno != 0 || (!r.IORunning && r.IOErrno != 0))
}

// SemiSync is the running server's semi-synchronous replication.
type SemiSync struct {
	// SourceEnabled and ReplicaEnabled are which sides are switched on.
	SourceEnabled  bool `json:"sourceEnabled"`
	ReplicaEnabled bool `json:"replicaEnabled"`
	// SourceMissing and ReplicaMissing tell that the side cannot be switched on: its plugin is not loaded.
	SourceMissing  bool `json:"sourceMissing,omitempty"`
	ReplicaMissing bool `json:"replicaMissing,omitempty"`
	// SourceActive is the source side's status: false while it commits without acknowledgements.
	SourceActive bool `json:"sourceActive"`
	// ReplicaActive tells that this replica acknowledges.
	ReplicaActive bool `json:"replicaActive"`
	// Clients is how many replicas with semi-sync are connected; WaitFor how many must acknowledge.
	Clients int `json:"clients"`
	WaitFor int `json:"waitFor"`
	// Waiting is how many sessions now wait for an acknowledgement.
	Waiting int `json:"waiting"`
}

// CanAcknowledge tells that a commit need not wait for replicas which are not there.
func (s SemiSync) CanAcknowledge() bool {
	return !s.SourceEnabled || !s.SourceActive || s.Clients >= s.WaitFor
}

// Role is what the manager's role loop does.
type Role struct {
	// Name is primary, replica or none.
	Name string `json:"name"`
	// Generation is the currentPrimaryGeneration it acts in.
	Generation int64 `json:"generation"`
	// Doing is the step it is at, or what it waits for, in a sentence.
	Doing string `json:"doing,omitempty"`
	// ResumeRefused is why a former primary does not open for writes by itself.
	ResumeRefused string `json:"resumeRefused,omitempty"`
	// PromotionRefused is why the target of a transition does not take the role, with the attempt it is
	// about: another instance holds more, the applier stopped with an error.
	PromotionRefused        string `json:"promotionRefused,omitempty"`
	PromotionRefusedAttempt string `json:"promotionRefusedAttempt,omitempty"`
	// Errant is what this instance holds and the current primary does not; empty when contained or unknown.
	Errant gtid.Set `json:"errant"`
	// Reasserts is how often this manager process opened a running server again that somebody else had made
	// read-only.
	Reasserts int64 `json:"reasserts,omitempty"`
	// IntentAgeMillis is how old the manager's view of the Cluster is; -1 when it never had one.
	IntentAgeMillis int64 `json:"intentAgeMillis"`
}

// Lease is the manager's view of the primary lease.
type Lease struct {
	// Held tells that this very Pod holds it and its deadline has not passed.
	Held bool `json:"held"`
	// RenewedAgoMillis is the age of the last successful renewal; -1 when never.
	RenewedAgoMillis int64 `json:"renewedAgoMillis"`
	// Fenced tells that the manager made the server read-only because it could not renew.
	Fenced bool `json:"fenced,omitempty"`
	// Vouched tells that it could not be renewed in time and is in force by the word of all other instances.
	Vouched bool `json:"vouched,omitempty"`
	// Peers are the instances that a holder asks before it goes on without a renewal: each of them promises
	// not to take the lease. Whoever is not among them has promised nothing. Absent when it holds no lease.
	Peers []string `json:"peers,omitempty"`
}

// From says why a report is not of this very Pod; nil when it is.
func (r *Report) From(instance, podUID, clusterUID string) error {
	if r.Instance != instance || r.PodUID != podUID || r.ClusterUID != clusterUID {
		return fmt.Errorf("report of another Pod than that of %s: instance %s, Pod %s, Cluster %s", instance, r.Instance, r.PodUID, r.ClusterUID)
	}
	return nil
}

// VouchQuestion is what the holder of the primary lease asks every other instance when it cannot renew it.
type VouchQuestion struct {
	// Instance is the holder's name, Holder its identity on the Lease: instance and Pod UID.
	Instance string `json:"instance"`
	Holder   string `json:"holder"`
	// Generation is the latest currentPrimaryGeneration that it knows of.
	Generation int64 `json:"generation"`
}

// VouchAnswer is what an instance says to that.
type VouchAnswer struct {
	// From is the instance that answers.
	From string `json:"from"`
	// Vouches tells that it knows nothing against the holder, and that it has promised not to take the lease
	// for the next 15 s of its own clock. Why is the reason for a refusal.
	Vouches bool   `json:"vouches"`
	Why     string `json:"why,omitempty"`
	// Newer tells that it knows another primary in a later generation.
	Newer bool `json:"newer,omitempty"`
	// Instances are all that it knows of: a holder asks those that it did not know, too.
	Instances []string `json:"instances,omitempty"`
}

// SemiSyncSettings is what the operator asks the primary for.
type SemiSyncSettings struct {
	// WaitFor is the number of acknowledgements per commit, at least 1.
	WaitFor int `json:"waitFor"`
	// Generation is the currentPrimaryGeneration for which this was decided; a primary of another one refuses.
	Generation int64 `json:"generation"`
	// LetGo asks to step down for a moment, which lets go the commits that wait: as long as they do no replica can be
	// cloned that would acknowledge them. No client is told that such a commit succeeded.
	LetGo bool `json:"letGo,omitempty"`
}

// Problem is the body of every answer that is not a success.
type Problem struct {
	Error string `json:"error"`
}
