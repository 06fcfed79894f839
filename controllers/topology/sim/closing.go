package sim

import (
	"time"

	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// The pause between two openings of a server that somebody else closed, and how far in the future the record of
// the last may lie and still count, as shipped.
const (
	reassertPause = 5 * time.Minute
	clockError    = 5 * time.Minute
)

// closing is how a manager knows that somebody else made its server read-only: it opened it, the same process
// still runs, and neither the role nor a fence has closed it since. Processes are known by their boot, 0 for none.
type closing struct {
	opened, fences, byOther int
	recorded                bool
}

func (m *manager) closedByOther(facts *protocol.MySQL) *role.Closed {
	c, boot := &m.closing, m.srv().p.boot
	if c.opened != 0 && facts != nil && !facts.Writable() {
		if c.opened == boot && m.keeper.fence == c.fences {
			c.byOther, c.recorded = boot, false
		}
		c.opened = 0
	}
	if c.byOther == 0 || c.byOther != boot {
		c.byOther = 0
		return nil
	}
	wait := time.Duration(0)
	if l := m.keeper.seen; l != nil && !l.reasserted.IsZero() {
		if since := m.w.date(m.p).Sub(l.reasserted); since >= -clockError {
			wait = max(0, reassertPause-max(0, since))
		}
	}
	return &role.Closed{Wait: wait, Recorded: c.recorded}
}

func (m *manager) rememberOpening(done role.StepKind) {
	switch done {
	case role.OpenWrites:
		m.closing = closing{opened: m.srv().p.boot, fences: m.keeper.fence}
	case role.RecordReassert:
		m.closing.recorded = true
	case role.Claim, role.Follow:
		m.closing.byOther = 0
	default:
	}
}
