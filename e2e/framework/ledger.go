package framework

import (
	"slices"
	"sync"
	"time"
)

// Ledger remembers the writes of an application: which were acknowledged, and when.
type Ledger struct {
	mu    sync.Mutex
	next  int64
	acked []ack
	// unsure are keys whose write ended with an error: the server may have done it or not.
	unsure map[int64]error
	last   error
}

type ack struct {
	key int64
	at  time.Time
}

// NewLedger returns an empty one.
func NewLedger() *Ledger { return &Ledger{unsure: map[int64]error{}} }

// Next gives out a key that no other write has.
func (l *Ledger) Next() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	return l.next
}

// Acknowledged records that the server answered OK.
func (l *Ledger) Acknowledged(key int64, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = append(l.acked, ack{key, at})
}

// Failed records that the write of a key ended with an error.
func (l *Ledger) Failed(key int64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsure[key], l.last = err, err
}

// Count is how many writes were acknowledged.
func (l *Ledger) Count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// Errors is how many writes ended with an error, and the last of these.
func (l *Ledger) Errors() (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.unsure), l.last
}

// Acked tells whether a write was acknowledged after t.
func (l *Ledger) Acked(t time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := len(l.acked)
	return n > 0 && l.acked[n-1].at.After(t)
}

// Gap is the longest time without an acknowledged write in [from, to]. The time since the last write before
// from belongs to it, and the time up to to when nothing was acknowledged any more.
func (l *Ledger) Gap(from, to time.Time) time.Duration {
	_, long := l.Pause(from, to)
	return long
}

// Pause is Gap with the time of the write that it began after.
func (l *Ledger) Pause(from, to time.Time) (begin time.Time, long time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	begin = from
	previous := from
	end := func(at time.Time) {
		if d := at.Sub(previous); d > long {
			begin, long = previous, d
		}
	}
	for _, a := range l.acked {
		if a.at.After(to) {
			break
		}
		if a.at.After(from) {
			end(a.at)
		}
		previous = a.at
	}
	end(to)
	return begin, long
}

// Missing are the acknowledged keys that are not among those found in the database.
func (l *Ledger) Missing(found []int64) []int64 { return l.missing(found, nil) }

// MissingBefore is Missing of what was acknowledged before t, for a database that was read from t on while
// the writing went on.
func (l *Ledger) MissingBefore(found []int64, t time.Time) []int64 { return l.missing(found, &t) }

func (l *Ledger) missing(found []int64, before *time.Time) []int64 {
	there := make(map[int64]bool, len(found))
	for _, k := range found {
		there[k] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var missing []int64
	for _, a := range l.acked {
		if !there[a.key] && (before == nil || a.at.Before(*before)) {
			missing = append(missing, a.key)
		}
	}
	slices.Sort(missing)
	return missing
}

// When is the time at which a write was acknowledged; the zero time if it was not.
func (l *Ledger) When(key int64) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.acked, func(a ack) bool { return a.key == key })
	if i < 0 {
		return time.Time{}
	}
	return l.acked[i].at
}

// First is the time of the first write that was acknowledged after t; the zero time if none was.
func (l *Ledger) First(t time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.acked, func(a ack) bool { return a.at.After(t) })
	if i < 0 {
		return time.Time{}
	}
	return l.acked[i].at
}

// Invented are keys in the database that nobody wrote, or that are there twice.
func (l *Ledger) Invented(found []int64) []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := map[int64]bool{}
	var invented []int64
	for _, k := range found {
		if k < 1 || k > l.next || seen[k] {
			invented = append(invented, k)
		}
		seen[k] = true
	}
	return invented
}
