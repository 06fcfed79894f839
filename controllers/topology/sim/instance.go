package sim

import (
	"slices"
	"time"

	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// instance is a Pod's processes and what the machine does for them.
type instance struct {
	w *World
	n int
	// uid is of the Pod that runs, or ran last, here.
	uid string

	srv      *server
	mgr      *manager
	watchdog *proc
	kubelet  *proc

	// killAt is the watchdog's deadline by the machine's clock, if armed.
	killAt time.Duration
	armed  bool
	timer  int

	// stopping tells that the Pod was asked to end.
	stopping bool
}

func newInstance(w *World, n int) *instance {
	i := &instance{w: w, n: n, uid: w.api.pods[n].uid}
	i.srv = &server{w: w, n: n, p: &proc{name: "mysqld", node: n}, heard: -1}
	i.mgr = &manager{w: w, n: n, p: &proc{name: "manager", node: n}}
	i.watchdog = &proc{name: "watchdog", node: n}
	i.kubelet = &proc{name: "kubelet", node: n}
	i.watchdog.start()
	return i
}

// arm moves the watchdog's deadline.
func (i *instance) arm(by time.Duration, due bool) {
	i.killAt, i.armed = by, due
	i.timer++
	if !due || i.w.rules.NoWatchdog {
		return
	}
	timer := i.timer
	i.w.later(i.watchdog, max(0, by-i.w.now(i.watchdog)), func() {
		if i.timer == timer {
			i.bark()
		}
	})
}

// bark kills the server if the deadline has passed.
func (i *instance) bark() {
	switch {
	case !i.armed || i.w.rules.NoWatchdog || !i.srv.p.alive:
	case i.w.now(i.watchdog) < i.killAt:
		i.arm(i.killAt, true)
	default:
		i.w.say(name(i.n), "the watchdog kills mysqld: the manager's deadline has passed")
		i.armed = false
		i.mgr.killServer()
	}
}

// adopt is a manager that was there before the world began: the first one holds the lease.
func (m *manager) adopt() {
	m.list()
	if m.n == 0 {
		m.keeper.acquire(func(bool) { m.wake() })
		m.srv().readOnly = false
	}
}

// keepStopped ends the server, cleanly or not, and keeps it stopped; or it ends that.
func (m *manager) keepStopped(how role.StepKind) {
	switch how {
	case role.StartServer:
		m.held = false
		m.startHeld()
	case role.KillServer:
		m.hold(0)
	default:
		m.hold(m.w.between(50*time.Millisecond, 2*time.Second))
	}
}

// hold ends the server, which takes a while, and keeps it stopped. One that stands still is killed then.
func (m *manager) hold(takes time.Duration) {
	m.held = true
	s := m.srv()
	boot := s.p.boot
	s.ready = false
	m.w.after(m.p, takes, func() {
		if s.p.alive && s.p.boot == boot {
			m.say("the server has stopped, and is kept so")
			s.crash(0)
		}
		m.publish(m.decision)
		m.wake()
		m.startHeld()
	})
}

// startHeld starts a server that is held no more, once it has ended.
func (m *manager) startHeld() {
	if m.held || m.srv().p.alive || m.w.inst[m.n].stopping {
		return
	}
	m.startServer()
}

// killServer ends the server's process; the manager sees it and starts it again after a pause.
func (m *manager) killServer() { m.w.inst[m.n].serverDied(0) }

// serverDied is the end of the server's process, however it came about.
func (i *instance) serverDied(lost int) {
	if !i.srv.p.alive {
		return
	}
	i.srv.crash(lost)
	m := i.mgr
	i.w.after(m.p, i.w.hop(), func() {
		m.publish(m.decision)
		m.wake()
		m.restartServer()
	})
}

// restartServer starts the server after a pause, unless the Pod is being stopped.
func (m *manager) restartServer() {
	pause := m.backoff
	m.backoff = min(2*m.backoff, 10*time.Second)
	m.w.later(m.p, pause, func() {
		if m.held || m.srv().p.alive || m.w.inst[m.n].stopping {
			return
		}
		m.startServer()
	})
}

func (m *manager) startServer() {
	m.say("starts mysqld")
	m.srv().boot(func() {
		m.w.after(m.p, m.w.hop(), func() { m.publish(m.decision); m.wake() })
	})
	m.publish(m.decision)
}

// containerDied is the end of all processes of the Pod: the kubelet starts them again.
func (i *instance) containerDied(lost int) {
	i.srv.crash(lost)
	i.mgr.p.kill()
	i.watchdog.kill()
	i.armed = false
	i.w.op.streamLost(i.n)
	i.w.after(i.kubelet, i.w.between(100*time.Millisecond, time.Second), func() {
		i.status(func(p *podObject) { p.ready, p.running = false, false })
	})
	i.w.after(i.kubelet, i.w.between(500*time.Millisecond, 3*time.Second), i.startContainer)
}

func (i *instance) startContainer() {
	if i.mgr.p.alive || i.stopping {
		return
	}
	i.w.say(name(i.n), "the container starts")
	i.watchdog.start()
	i.mgr.boot()
	i.status(func(p *podObject) { p.running = true })
	// It waits a while for the Cluster, and starts all the same when that is not to be had.
	if i.w.net.both(i.n, i.w.net.api) && slices.Contains(i.w.api.cluster.c.Status.FencedInstances, name(i.n)) {
		i.mgr.say("is fenced, and does not start mysqld")
		i.mgr.held = true
	} else {
		i.mgr.startServer()
	}
	i.w.op.reachable(i.n)
}

// status is what the kubelet writes to the Pod, now or when it reaches the API server again.
func (i *instance) status(change func(*podObject)) {
	w := i.w
	if !w.net.both(i.n, w.net.api) {
		w.after(i.kubelet, 2*time.Second, func() { i.status(change) })
		return
	}
	w.after(nil, w.hop(), func() { w.api.patchPod(i.n, i.uid, change) })
}

// readiness is what the probe says, as the kubelet finds it.
func (i *instance) readiness() {
	r := i.mgr.report()
	primary := ""
	if c := i.mgr.cluster; c != nil {
		primary = c.c.Status.CurrentPrimary
	}
	ready := ready(r, primary)
	if p := i.w.api.pods[i.n]; p != nil && p.ready == ready {
		return
	}
	i.w.after(i.kubelet, i.w.between(100*time.Millisecond, 1200*time.Millisecond), func() {
		ready := i.mgr.p.alive && !i.mgr.p.paused
		if ready {
			ready = readyNow(i)
		}
		i.status(func(p *podObject) { p.ready = ready })
	})
}

func readyNow(i *instance) bool {
	primary := ""
	if c := i.mgr.cluster; c != nil {
		primary = c.c.Status.CurrentPrimary
	}
	return ready(i.mgr.report(), primary)
}

// ready is the shipped probe, without its words.
func ready(r *protocol.Report, primary string) bool {
	m := r.MySQL
	switch {
	case m == nil || r.Server.State != protocol.ServerRunning || m.Offline:
		return false
	case r.Instance == primary:
		return m.Writable()
	case m.Writable() || m.Replication == nil:
		return false
	}
	return protocol.HostInstance(m.Replication.SourceHost) == primary && m.Replication.SQLRunning && m.Replication.IORunning
}

// grace is how long a Pod has to end by itself.
const grace = 30 * time.Second

// list shows the kubelet its Pod as it is now.
func (i *instance) list() {
	if i.w.net.both(i.n, i.w.net.api) {
		i.sawPod(i.w.api.pods[i.n])
	}
}

// sawPod is the kubelet's part: it stops what is to be stopped and starts what is new.
func (i *instance) sawPod(pod *podObject) {
	switch {
	case pod == nil:
		return
	case pod.uid == i.uid && pod.terminating && !i.stopping:
		i.stopping = true
		i.w.say(name(i.n), "the Pod is being stopped")
		if i.mgr.p.alive {
			i.w.after(i.mgr.p, i.w.hop(), i.mgr.shutdown)
		} else {
			i.ended()
			return
		}
		i.w.after(i.kubelet, grace, func() {
			if i.uid == pod.uid {
				i.ended()
			}
		})
	case pod.uid != i.uid && !pod.terminating:
		if i.mgr.p.alive || i.srv.p.alive {
			return
		}
		i.uid, i.stopping = pod.uid, false
		i.w.after(i.kubelet, i.w.between(300*time.Millisecond, 2*time.Second), i.startContainer)
	case pod.uid != i.uid && pod.terminating:
		i.remove(pod.uid)
	case pod.uid == i.uid && !i.mgr.p.alive:
		i.startContainer()
	}
}

// ended is the end of all processes of a Pod that was stopped.
func (i *instance) ended() {
	if i.srv.p.alive {
		i.srv.crash(0)
	}
	i.mgr.p.kill()
	i.watchdog.kill()
	i.armed = false
	i.w.op.streamLost(i.n)
	i.remove(i.uid)
}

// remove tells the API server that the Pod is gone.
func (i *instance) remove(uid string) {
	w := i.w
	if !w.net.both(i.n, w.net.api) {
		w.after(i.kubelet, 2*time.Second, func() { i.remove(uid) })
		return
	}
	w.after(nil, w.hop(), func() {
		if p := w.api.pods[i.n]; p != nil && p.uid == uid {
			w.say(name(i.n), "the Pod is gone")
			w.api.putPod(i.n, nil)
		}
	})
}

// shutdown gives up the role, then ends the server, as the manager does after a signal.
func (m *manager) shutdown() {
	m.stopping = true
	m.wake()
	deadline := m.now() + grace/2 - 3*time.Second
	m.until(deadline, func() bool { return m.srv().full || !m.mayWrite() && !m.keeper.state.Mine() }, func() {
		m.stepDownDue = true
		m.wake()
		m.until(m.now()+8*time.Second, func() bool { return !m.mayWrite() && (!m.keeper.state.Mine() || !m.srv().p.alive) }, func() {
			m.w.inst[m.n].stopServer()
		})
	})
}

// mayWrite tells that the server is not confirmed to be read-only or gone.
func (m *manager) mayWrite() bool {
	s := m.srv()
	return s.p.alive && s.ready && (s.p.paused || !s.readOnly)
}

func (m *manager) until(deadline time.Duration, so func() bool, then func()) {
	if so() || m.now() >= deadline {
		then()
		return
	}
	m.w.later(m.p, 100*time.Millisecond, func() { m.until(deadline, so, then) })
}

// stopServer ends the server, cleanly where it takes no writes, and then the manager.
func (i *instance) stopServer() {
	i.w.say(name(i.n), "the server is stopped")
	i.srv.crash(0)
	i.mgr.wake()
	deadline := i.mgr.now() + 5*time.Second
	i.mgr.until(deadline, func() bool { return !i.mgr.keeper.state.Mine() }, func() {
		i.w.after(i.kubelet, 0, i.ended)
	})
}
