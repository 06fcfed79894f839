package lease

import (
	"errors"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Times are the durations that the lease lives by.
type Times struct {
	// TTL is how long everybody else watches a lease that does not change before it has expired.
	TTL time.Duration
	// Renew is from the start of one successful renewal to the next one, RenewRetry from the start of one that
	// failed, and Call how long one may take.
	Renew, RenewRetry, Call time.Duration
	// Fence is when a holder that nothing has confirmed since makes its server read-only, Kill when it kills a
	// server that is not read-only by then.
	Fence, Kill time.Duration
	// LostKill is how long a server may take to become read-only once another holder was seen.
	LostKill time.Duration
	// VouchFrom is how long after its last renewal a holder asks the others to vouch for it, VouchEvery how long
	// after the start of a unanimous round it asks again, VouchRetry how long after one that was not, and
	// VouchCall how long a round may take.
	VouchFrom, VouchEvery, VouchRetry, VouchCall time.Duration
	// Promise is how long whoever vouched does not take the lease.
	Promise time.Duration
}

// DefaultTimes are those that are shipped.
func DefaultTimes() Times {
	return Times{
		TTL:   api.PrimaryLeaseTTL,
		Renew: 5 * time.Second, RenewRetry: time.Second, Call: 3 * time.Second,
		Fence: 10 * time.Second, Kill: 13 * time.Second, LostKill: 3 * time.Second,
		VouchFrom: 8 * time.Second, VouchEvery: 5 * time.Second, VouchRetry: 500 * time.Millisecond, VouchCall: 1500 * time.Millisecond,
		Promise: api.PrimaryLeaseTTL,
	}
}

// Check tells which of the relations that safety and rest depend on do not hold.
func (t Times) Check() error {
	var errs []error
	for _, r := range []struct {
		holds bool
		what  string
	}{
		{0 < t.Renew && t.Renew < t.Fence, "a renewal is due before the fence"},
		{t.Call < t.Renew, "a call ends before the next is due"},
		{2*t.Renew <= t.Fence, "one lost renewal is no reason to fence"},
		{t.Fence < t.Kill && t.Kill < t.TTL, "a server is fenced, then killed, then the lease expires"},
		{t.Kill < t.Promise, "a promise outlasts what it was given for"},
		{t.Renew < t.VouchFrom && t.VouchFrom+t.VouchCall < t.Fence, "a round of questions fits before the fence"},
		{t.VouchEvery+t.VouchCall < t.Fence, "the next round fits before the fence"},
		{t.RenewRetry > 0 && t.VouchRetry > 0 && t.LostKill > 0, "a pause is longer than nothing"},
	} {
		if !r.holds {
			errs = append(errs, errors.New("the times of the lease do not hold: "+r.what))
		}
	}
	return errors.Join(errs...)
}
