package sim

import (
	"slices"

	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// live reads the Cluster and the Lease from the API server; nil when that fails.
func (m *manager) live(then func(*stored)) {
	var c *stored
	var l *leaseObject
	m.w.call(m.p, m.n, m.w.net.api, nil, callTimeout, func() bool {
		c, l = m.w.api.cluster, m.w.api.lease
		return true
	}, func(ok bool) {
		if !ok {
			then(nil)
			return
		}
		m.keeper.saw(l)
		m.sawCluster(c)
		then(c)
	})
}

// askPeers asks those whom the decision is about.
func (m *manager) askPeers(mo *moment, then func()) {
	m.asked = m.now()
	whom := m.whom(mo)
	var answers []role.Peer
	var silent []string
	left := len(whom)
	finish := func() {
		m.peers = &role.Peers{Answers: answers, Silent: silent}
		mo.facts.Peers = m.answers()
		mo.facts.Lease = m.keeper.facts()
		then()
	}
	if left == 0 {
		finish()
		return
	}
	for _, n := range whom {
		var answer *protocol.Report
		peer := m.w.inst[n]
		m.w.call(m.p, m.n, n, peer.mgr.p, askTimeout, func() bool {
			answer = peer.mgr.fresh()
			return true
		}, func(ok bool) {
			if ok && answer.MySQL != nil {
				answers = append(answers, role.Peer{
					Instance: answer.Instance, ServerUUID: answer.MySQL.ServerUUID, Generation: answer.Role.Generation,
					Executed: answer.MySQL.Executed, Held: answer.MySQL.Held(), ReadOnly: !answer.MySQL.Writable(),
					Diverged: slices.Contains(mo.cluster.c.Status.DivergedInstances, answer.Instance),
				})
			} else {
				silent = append(silent, name(n))
			}
			if left--; left == 0 {
				finish()
			}
		})
	}
}

// whom is every other instance for who takes the role, and the primary for who follows it.
func (m *manager) whom(mo *moment) []int {
	i := mo.intent
	t := i.Transition
	if i.CurrentPrimary == m.me() || t != nil && t.To == m.me() {
		var all []int
		for n := range m.w.inst {
			if n != m.n {
				all = append(all, n)
			}
		}
		return all
	}
	return []int{ordinal(i.CurrentPrimary)}
}
