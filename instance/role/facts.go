package role

import (
	"time"

	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

// Facts is what this instance knows of itself and its peers at one moment.
type Facts struct {
	// Instance is this instance's name.
	Instance string
	// ServerRunning tells that mysqld answers; ServerGone that no mysqld process exists. Between the two
	// lies a server that is starting or hanging.
	ServerRunning bool
	ServerGone    bool
	// ServerStarting tells that mysqld was started and does not accept connections yet: it takes no writes.
	// ServerStuck tells that it runs and has for too long answered nothing, or not become read-only for a fence.
	ServerStarting bool
	ServerStuck    bool
	// ServerHeld tells that the server is kept stopped, or being stopped for that: it is not started again by itself.
	ServerHeld bool
	// MySQL is what the server answered; nil unless ServerRunning.
	MySQL *protocol.MySQL
	// SemiSync tells that semi-synchronous replication is configured.
	SemiSync bool
	Lease    LeaseFacts
	// Peers is what the other instances answered when last asked; nil when they were not asked since the
	// last step that changed something.
	Peers *Peers
	// RetryDue tells that a replication thread that stopped with an error may be started again.
	RetryDue bool
	// LatelyPrimary tells that this instance was the primary until a moment ago: clients of the primary may
	// still be led here.
	LatelyPrimary bool
	// HandoverOverdue tells that a fenced primary has waited long enough for a replica that holds everything.
	HandoverOverdue bool
	// LetGo tells that the operator asked, a moment ago, to let commits go that wait for acknowledgements which do not
	// come.
	LetGo bool
	// Closed is set when somebody else made the running server read-only, which this manager had opened.
	Closed *Closed
	// Refusal is what this manager refused a moment ago; it stands until the operator makes another attempt
	// or, for a resume, until it is looked at again.
	Refusal *Refusal
	// ShuttingDown tells that the Pod is being stopped: the role is not taken any more. StepDownDue tells
	// that the operator had its time to move the role away, and that this instance now gives it up itself.
	ShuttingDown bool
	StepDownDue  bool
}

// Closed is a primary that somebody else made read-only.
type Closed struct {
	// Wait is how long it must stay so, since the same has happened before.
	Wait time.Duration
	// Recorded tells that the opening which is due is recorded on the Lease.
	Recorded bool
}

// Refusal is why this instance did not take, or take up again, the role.
type Refusal struct {
	// Attempt is the transition that was refused; empty for a resume, which Generation then names.
	Attempt    string
	Generation int64
	Why        string
}

func (r *Refusal) ofAttempt(attempt string) bool {
	return r != nil && attempt != "" && r.Attempt == attempt
}

func (r *Refusal) ofResume(generation int64) bool {
	return r != nil && r.Attempt == "" && r.Generation == generation
}

// LeaseFacts is the primary lease as last seen, and what it means to this instance.
type LeaseFacts struct {
	// Known is false until the Lease was read once.
	Known bool
	// Holder is the instance that holds it; empty when it is free.
	Holder string
	// Mine tells that this very Pod is the holder; InForce that its renewal deadline has not passed.
	Mine    bool
	InForce bool
	// Expired tells that another's lease was watched for a whole TTL without a renewal.
	Expired bool
	// PromisedTo is the holder that this instance has vouched for a moment ago: until the promise ends, it does
	// not take the lease. Empty when there is none.
	PromisedTo string
	// Unwatched tells that nobody would kill the server if its manager stood still.
	Unwatched bool
	// Handoff is what the last holder had executed when it was read-only; nil when none is recorded or it
	// cannot be read. HandoffAttempt is the transition it was recorded for.
	Handoff        *gtid.Set
	HandoffAttempt string
}

func (l LeaseFacts) held() bool { return l.Known && l.Mine && l.InForce }

// handedOver tells that the old primary recorded what it had executed, for this very attempt.
func (l LeaseFacts) handedOver(attempt string) bool {
	return l.Handoff != nil && l.HandoffAttempt == attempt
}

// Peers is one round of questions to every other instance of the Cluster.
type Peers struct {
	// SinceLease tells that they were asked after this instance took the lease: from then on nobody can
	// write, and what they hold is final.
	SinceLease bool
	// Answers holds those that answered, Silent names those that did not.
	Answers []Peer
	Silent  []string
}

// Peer is what one other instance answered.
type Peer struct {
	Instance   string
	ServerUUID string
	Generation int64
	Executed   gtid.Set
	Held       gtid.Set
	// ReadOnly tells that its server takes no writes of clients.
	ReadOnly bool
	// Diverged tells that the operator found it to hold what a primary did not: that it holds more is no
	// reason against a promotion.
	Diverged bool
}

func (p *Peers) find(instance string) (Peer, bool) {
	if p == nil {
		return Peer{}, false
	}
	for _, a := range p.Answers {
		if a.Instance == instance {
			return a, true
		}
	}
	return Peer{}, false
}

// Intent is the Cluster as last seen.
type Intent struct {
	// Known is false until the Cluster was read once.
	Known bool
	// Live tells that the Cluster and the Lease were read from the API server itself in this very pass.
	Live           bool
	CurrentPrimary string
	Generation     int64
	Transition     *Transition
	// PromotionExecuted is what the current primary had executed at its promotion; nil when none is
	// recorded, PromotionUnreadable when what is recorded does not parse.
	PromotionExecuted   *gtid.Set
	PromotionUnreadable bool
	// Diverged tells that the operator found this instance to hold what the primary does not.
	Diverged bool
	// Fenced tells that a person took this instance out of service: its server is to be stopped.
	Fenced bool
	// FenceAsked tells that the person's own words name this instance, whatever the operator has made of them: a server that
	// is kept stopped is not started.
	FenceAsked bool
	// AckCount is how many acknowledgements the primary waits for.
	AckCount int
}

// Kind says why the primary changes.
type Kind string

// The kinds, as in the API.
const (
	Bootstrap  Kind = "bootstrap"
	Switchover Kind = "switchover"
	Failover   Kind = "failover"
)

// Transition is the one change of primary that is under way.
type Transition struct {
	Attempt    string
	Kind       Kind
	From, To   string
	Generation int64
}

// pending returns the transition that is still to be carried out. One whose target is already the primary
// in its generation, or that belongs to an earlier generation, is over.
func (i Intent) pending() *Transition {
	t := i.Transition
	if t == nil || t.Generation != i.Generation+1 {
		return nil
	}
	return t
}
