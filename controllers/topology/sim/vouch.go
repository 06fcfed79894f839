package sim

import (
	"time"

	"cnmsql.co/operator/instance/lease"
)

// vouch is one round of questions to every other instance.
func (k *keeper) vouch() {
	m, w := k.m, k.w()
	if m.cluster == nil {
		return
	}
	k.asking = true
	started := m.now()
	q := lease.Question{Instance: m.me(), Holder: k.identity(), Generation: m.cluster.c.Status.CurrentPrimaryGeneration}
	var answers []lease.Answer
	left := 0
	finish := func() {
		v := lease.Tally(m.me(), m.cluster.c.Status.InstanceNames, m.attached(), answers)
		switch {
		case v.Newer:
			k.state = k.state.Displaced()
		case v.Unanimous:
			m.say("all others vouch for it")
			k.state = k.state.Agreed(started)
		default:
			k.state = k.state.Doubted(started)
		}
		k.asking = false
		k.tick()
	}
	for n := range w.inst {
		if n == m.n {
			continue
		}
		left++
		var a lease.Answer
		peer := w.inst[n].mgr
		w.call(m.p, m.n, n, peer.p, w.rules.Times.VouchCall, func() bool {
			a = peer.keeper.answer(q)
			return true
		}, func(ok bool) {
			if ok {
				answers = append(answers, a)
			}
			if left--; left == 0 {
				finish()
			}
		})
	}
}

func (k *keeper) answer(q lease.Question) lease.Answer {
	v := lease.View{}
	if c := k.m.cluster; c != nil {
		s := &c.c.Status
		v = lease.View{Known: true, Generation: s.CurrentPrimaryGeneration, Primary: s.CurrentPrimary, Instances: s.InstanceNames, Fenced: s.FencedInstances}
		if t := s.PrimaryTransition; t != nil {
			v.Target, v.TargetGeneration = t.To, t.Generation
		}
	}
	var a lease.Answer
	k.state, a = k.state.Answer(k.m.now(), k.m.me(), q, v)
	if k.w().rules.ForgetPromises && a.Vouches {
		k.state, _ = k.state.Answer(-time.Hour, k.m.me(), q, v)
	}
	return a
}

// attached are the instances that the own server sends its binary log to.
func (m *manager) attached() []string {
	var all []string
	for _, i := range m.w.inst {
		if i.srv.sendsFrom(m.n) {
			all = append(all, i.mgr.me())
		}
	}
	return all
}
