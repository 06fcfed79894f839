package sim

import (
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/instance/lease"
	"cnmsql.co/operator/instance/role"
)

// Rules are what decides in a world: the shipped functions, or mutations that wrap them. The switches are of
// the model: each leaves out a guard that lies in what carries the decisions out.
type Rules struct {
	Core  func(core.Snapshot) core.Decision
	Role  func(role.Facts, role.Intent) role.Decision
	Times lease.Times

	// Vouch makes holders ask their peers when they cannot renew.
	Vouch bool
	// NoFence, NoWatchdog: a holder that cannot renew goes on; one whose manager hangs, too.
	NoFence, NoWatchdog bool
	// ForgetPromises takes the lease although one has vouched for its holder.
	ForgetPromises bool
	// TrustRenewTime judges expiry by the time that the holder wrote and the own date.
	TrustRenewTime bool
	// ClaimBlindly and CommitBlindly write the status without the version that was read, LabelBlindly a label
	// without looking for another.
	ClaimBlindly, CommitBlindly, LabelBlindly bool
	// AnswerWaiters switches semi-sync off before the clients' sessions have ended.
	AnswerWaiters bool
	// NoSpareTime opens however little is left of the lease.
	NoSpareTime bool
	// LoseRelayLog throws away what was received and not applied when a server starts, as relay_log_recovery does.
	LoseRelayLog bool
	// Impatient takes every lease as expired.
	Impatient bool
}

// Shipped are the rules of the product.
func Shipped() *Rules {
	return &Rules{Core: core.Decide, Role: role.Decide, Times: lease.DefaultTimes(), Vouch: true}
}

// expired is an instance's judgement of another's lease.
func (r *Rules) expired(k *keeper, now time.Duration) bool {
	if k.seen.holder == k.identity() || k.seen.holder == "" {
		return false
	}
	if r.Impatient {
		return true
	}
	if r.TrustRenewTime {
		return k.w().date(k.m.p).Sub(k.seen.renewTime) >= api.PrimaryLeaseTTL
	}
	return k.state.UntilExpiry(now) == 0 && k.state.MayAcquire(now)
}

// lease is the operator's judgement.
func (r *Rules) lease(w *World, o *operator, l *core.Lease) {
	if r.Impatient {
		l.Unchanged = api.PrimaryLeaseTTL
	}
	if r.TrustRenewTime && l.Holder != "" {
		l.Unchanged = w.date(o.p).Sub(o.lease.renewTime)
	}
}
