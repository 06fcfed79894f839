package agent

// signal wakes one waiting goroutine. Signals that nobody has waited for yet are one.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

func (s signal) set() {
	select {
	case s <- struct{}{}:
	default:
	}
}
