package mysql

import (
	"fmt"
	"strconv"
	"sync"
	"time"
)

// beats judges how long ago the source last sent something.
//
// The server's own clock says it exactly, as long as nobody sets that clock back. Then the age would be
// negative, and a source that is silent for an hour would look alive for as long. In that case it is
// counted by the monotonic clock from when the sign of life was first seen here.
type beats struct {
	mu   sync.Mutex
	mark string
	seen time.Time
}

// age is in milliseconds, -1 when the source never sent anything. micros is the server's figure, mark
// changes with every sign of life.
func (b *beats) age(micros, mark string, now time.Time) (int64, error) {
	n, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the age of the last heartbeat: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if mark != b.mark || b.seen.IsZero() {
		b.mark, b.seen = mark, now
	}
	if strconv.FormatInt(n, 10) == never {
		return -1, nil
	}
	if n < 0 {
		return now.Sub(b.seen).Milliseconds(), nil
	}
	return n / 1000, nil
}
