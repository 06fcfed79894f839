package facts

import "time"

// How long something may take before it counts as trouble. What is younger may only be on its way.
const (
	// unscheduledShown is for a Pod that a scheduler has just found no node for: claims and nodes that were only
	// just made pass by themselves.
	unscheduledShown = 5 * time.Second
	// volumePatience is for a provisioner that was asked for a volume.
	volumePatience = 30 * time.Second
	// podPatience is for a scheduler, and for a node to make a Pod's volumes and network.
	podPatience = time.Minute
	// pullPatience is for images, which are large.
	pullPatience = 5 * time.Minute
)

// patience judges for how long something has been so, and notes when the next of it will count as trouble. The
// times are those of the API server and its nodes: a clock that differs makes a message come sooner or later,
// and nothing else.
type patience struct {
	now time.Time
	// again is after how long the next thing that is waited for counts; zero when nothing is waited for.
	again time.Duration
}

// over tells that something has been so for longer than it may. What nobody dated is young.
func (p *patience) over(since time.Time, may time.Duration) bool {
	if since.IsZero() {
		return false
	}
	left := may - p.now.Sub(since)
	if left <= 0 {
		return true
	}
	if left = min(left, may); p.again == 0 || left < p.again {
		p.again = left
	}
	return false
}
