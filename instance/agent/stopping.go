package agent

import "sync/atomic"

// Stopping is how far the end of this Pod is; the zero value is a Pod that stays.
type Stopping struct {
	asked, stepDown atomic.Bool
}

// Facts are for the role: whether the Pod is being stopped, and whether the role is to be given up now.
func (s *Stopping) Facts() (shuttingDown, stepDownDue bool) {
	return s.asked.Load(), s.stepDown.Load()
}
