package framework

import (
	"context"
	"fmt"
	"time"
)

// pause is how long Await waits before it looks again.
const pause = 100 * time.Millisecond

// Await looks until done, at most for the given time. now is what was seen, for the error and for progress; an
// error of look is remembered and tried again, as a server under test may be away for a moment.
func Await(ctx context.Context, what string, limit time.Duration, look func(context.Context) (done bool, now string, err error)) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	seen := "nothing"
	for {
		done, now, err := look(bounded)
		switch {
		case err == nil && done:
			return nil
		case err == nil:
			seen = now
		case bounded.Err() == nil:
			seen = err.Error()
		}
		select {
		case <-bounded.Done():
			if ctx.Err() != nil {
				return fmt.Errorf("waiting for %s: %w", what, ctx.Err())
			}
			return fmt.Errorf("waited %s for %s in vain; last seen: %s", limit, what, seen)
		case <-ticker.C:
		}
	}
}
