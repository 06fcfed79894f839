package agent

import (
	"context"
	"sync"
	"time"

	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
)

// Process is the server's process, see mysqld.Supervisor.
type Process interface {
	State() mysqld.State
	// Watch is the state and a channel that is closed when it changes.
	Watch() (mysqld.State, <-chan struct{})
	// Start begins to keep a server running.
	Start()
	// Stop ends the server cleanly and for good, and kills it when ctx ends first.
	Stop(ctx context.Context) error
	// Kill ends the present server at once.
	Kill()
	// Hold ends the server and keeps it stopped until Release; see mysqld.Supervisor.
	Hold(within time.Duration)
	Release()
}

// Reader reads the server's facts.
type Reader interface {
	Read(ctx context.Context) (*protocol.MySQL, error)
	Version(ctx context.Context) (string, error)
}

// Replication is the steps of a replica.
type Replication interface {
	StopReplicaIO(ctx context.Context) error
	StopReplica(ctx context.Context) error
	StartReplica(ctx context.Context) error
	StartReplicaSQL(ctx context.Context) error
	ResetReplicaAll(ctx context.Context) error
	Follow(ctx context.Context, source mysql.Source, known gtid.Set) error
}

// Writes is the steps that decide who may write.
type Writes interface {
	Demote(ctx context.Context, o mysql.DemoteOptions) error
	OpenWrites(ctx context.Context) error
	AdmitClients(ctx context.Context) error
	SetSemiSync(ctx context.Context, source, replica bool, waitFor int) error
	// PrepareStop ends all connections, which a server that stops would wait for.
	PrepareStop(ctx context.Context) error
}

// Server is the running server, see mysql.Server.
type Server interface {
	Reader
	Replication
	Writes
}

// Instance is the server with the stage of its provisioning: until its data are complete, whatever runs
// there is not this instance's server yet.
type Instance struct {
	Process

	changed func()
	mu      sync.Mutex
	ready   bool
	making  *protocol.Provision

	// turn is held while the keeping is ended or begun anew.
	turn    sync.Mutex
	stopped bool
	// leaving is set when nothing is to be asked of the server any more.
	leaving bool
}

// NewInstance is an instance that is not provisioned; changed is called after each progress of that.
func NewInstance(p Process, changed func()) *Instance {
	return &Instance{Process: p, changed: changed, making: &protocol.Provision{Step: protocol.StepWaiting}}
}

// Progress takes what provisioning does, nil when it has nothing to do.
func (i *Instance) Progress(p *protocol.Provision) {
	i.mu.Lock()
	i.making = p
	i.mu.Unlock()
	i.changed()
}

// Provisioned tells that the data are complete: from now on the server has a role.
func (i *Instance) Provisioned() {
	i.mu.Lock()
	i.ready, i.making = true, nil
	i.mu.Unlock()
	i.changed()
}

// leave makes the server count as not running: its connections are about to be closed.
func (i *Instance) leave() {
	i.mu.Lock()
	i.leaving = true
	i.mu.Unlock()
}

// Stop ends the server cleanly and for good, and kills it when ctx ends first.
func (i *Instance) Stop(ctx context.Context) error {
	i.turn.Lock()
	defer i.turn.Unlock()
	i.stopped = true
	return i.Process.Stop(ctx)
}

// Retry ends the pause of a server that does not come up. It does nothing when there is no such pause.
func (i *Instance) Retry() {
	i.mu.Lock()
	ready := i.ready
	i.mu.Unlock()
	st := i.State()
	if !ready || st.Server != protocol.ServerDown || st.Restarts == 0 {
		return
	}
	i.turn.Lock()
	defer i.turn.Unlock()
	if i.stopped || !i.Gone() {
		return
	}
	// There is no process to wait for, only the pause to end.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if i.Process.Stop(ctx) == nil {
		i.Process.Start()
	}
}

// Running tells that the server accepts connections and its data are complete.
func (i *Instance) Running() bool {
	i.mu.Lock()
	ready := i.ready && !i.leaving
	i.mu.Unlock()
	return ready && i.State().Server == protocol.ServerRunning
}

// Complete tells that the data are.
func (i *Instance) Complete() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.ready
}

// Gone tells that no server process exists.
func (i *Instance) Gone() bool { return i.State().Pid == 0 }

// stage is the state for the report.
func (i *Instance) stage() (mysqld.State, *protocol.Provision) {
	st := i.State()
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.ready && st.Server != protocol.ServerStopping {
		st.Server = protocol.ServerProvisioning
	}
	return st, i.making
}

// ServerFencer makes an instance's server take no writes, for the Keeper.
type ServerFencer struct {
	Instance *Instance
	Server   Writes
}

// Demote implements Fencer.
func (f ServerFencer) Demote(ctx context.Context, drain time.Duration) error {
	// The role has not moved: reads are better than nothing.
	return f.Server.Demote(ctx, mysql.DemoteOptions{DrainAfter: drain, Admit: true})
}

// Gone implements Fencer.
func (f ServerFencer) Gone() bool { return f.Instance.Gone() }

// Kill implements Fencer.
func (f ServerFencer) Kill() { f.Instance.Kill() }
