package mysql

import (
	"testing"
	"time"
)

func TestANewPrimaryLeavesOutWhatOthersMayHave(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	stamp := func(server uint32, generation int64, ago time.Duration) Stamp {
		return Stamp{server, generation, now.Add(-ago)}
	}
	for _, c := range []struct {
		name       string
		all        []Stamp
		generation int64
		aside      uint64
	}{
		{"the first stamp of a Cluster", nil, 1, 0},
		{"the first stamp of a Cluster that is older than the heartbeat", nil, 7, 64},
		{"it goes on", []Stamp{stamp(1, 7, time.Hour), stamp(2, 6, time.Hour)}, 7, 0},
		{"it has the role anew", []Stamp{stamp(1, 7, time.Minute), stamp(2, 8, time.Second)}, 9, 64 + 2},
		{"it had fallen behind", []Stamp{stamp(2, 8, 5*time.Minute)}, 9, 64 + 600},
		{"all was stopped for a night", []Stamp{stamp(2, 8, 8*time.Hour)}, 9, 64 + 7200},
		{"the former primary's clock is ahead", []Stamp{stamp(2, 8, -time.Hour)}, 9, 64},
	} {
		if got := aside(c.all, 1, c.generation, now); got != c.aside {
			t.Errorf("%s: %d, want %d", c.name, got, c.aside)
		}
	}
}
