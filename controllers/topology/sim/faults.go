package sim

import (
	"fmt"
	"slices"
	"time"
)

// FaultKind names what goes wrong, or what a person asks for.
type FaultKind string

// The kinds. A and B of a Fault are the instances that it is about.
const (
	KillServer      FaultKind = "mysqld is killed"
	KillContainer   FaultKind = "the container is killed"
	CrashMachine    FaultKind = "the machine crashes"
	LoseMachine     FaultKind = "the machine is lost for good"
	PauseServer     FaultKind = "mysqld is paused"
	PauseManager    FaultKind = "the manager is paused"
	PauseWatchdog   FaultKind = "the watchdog is paused"
	PauseMachine    FaultKind = "the machine is paused"
	CutInstances    FaultKind = "two instances do not reach each other"
	CutOneWay       FaultKind = "nothing gets from one instance to another"
	CutOperator     FaultKind = "the operator and an instance do not reach each other"
	CutFromOperator FaultKind = "nothing gets from the operator to an instance"
	CutAPI          FaultKind = "an instance and the API server do not reach each other"
	CutFromAPI      FaultKind = "no answer gets from the API server to an instance"
	Isolate         FaultKind = "an instance reaches nobody"
	APIOutage       FaultKind = "the API server is down"
	CutOperatorAPI  FaultKind = "the operator and the API server do not reach each other"
	KillOperator    FaultKind = "the operator is killed"
	PauseOperator   FaultKind = "the operator is paused"
	StaleInstance   FaultKind = "an instance's watches stand still"
	StaleOperator   FaultKind = "the operator's watches stand still"
	SlowInstance    FaultKind = "an instance's requests are late"
	SlowOperator    FaultKind = "the operator's requests are late"
	LossyInstance   FaultKind = "answers to an instance are lost"
	LossyOperator   FaultKind = "answers to the operator are lost"
	MakeReadOnly    FaultKind = "a person makes a server read-only"
	SlowApplier     FaultKind = "an instance applies slowly"
	SlowReceiver    FaultKind = "an instance receives late"
	FillVolume      FaultKind = "an instance's volume is full"
	TearDisk        FaultKind = "the machine crashes and its disk lost what it had confirmed"
	DeletePod       FaultKind = "a person deletes a Pod"
	AskSwitchover   FaultKind = "a person asks for a switchover"
	CancelAsked     FaultKind = "a person cancels the switchover"
	FenceInstance   FaultKind = "a person fences an instance"
	MoveClock       FaultKind = "the date of a machine is set"
)

// Kinds are all that must do no harm in any combination. TearDisk is not among them: alone it does none, because
// the replicas tell the server what it lost; together with the loss of these it may.
var Kinds = []FaultKind{
	KillServer, KillContainer, CrashMachine, LoseMachine, PauseServer, PauseManager, PauseWatchdog, PauseMachine,
	CutInstances, CutOneWay, CutOperator, CutFromOperator, CutAPI, CutFromAPI, Isolate, APIOutage, CutOperatorAPI,
	KillOperator, PauseOperator, StaleInstance, StaleOperator, SlowInstance, SlowOperator, LossyInstance, LossyOperator, SlowApplier, SlowReceiver,
	DeletePod, AskSwitchover, CancelAsked, MakeReadOnly, MoveClock, FenceInstance, FillVolume,
}

// Fault is one of them at a moment, for a while.
type Fault struct {
	At, For time.Duration
	Kind    FaultKind
	A, B    int
}

func (f Fault) String() string {
	text := fmt.Sprintf("%s %s: %s", clock(f.At), name(f.A), f.Kind)
	if f.Kind == CutInstances || f.Kind == CutOneWay {
		text += " (" + name(f.B) + ")"
	}
	return text + fmt.Sprintf(", for %s", f.For.Round(time.Millisecond))
}

// strike makes a fault happen, and returns what repairs it; nil when that happens by itself.
func (w *World) strike(f Fault) (repair func()) {
	i := w.inst[f.A]
	w.say("FAULT", "%s (%s)", f.Kind, name(f.A))
	w.noteFlows()
	defer w.brokenFlows()
	switch f.Kind {
	case KillServer:
		i.serverDied(0)
	case KillContainer:
		if i.mgr.p.alive {
			i.containerDied(0)
		}
	case CrashMachine:
		return w.crashMachine(f.A, 0)
	case TearDisk:
		return w.crashMachine(f.A, 3)
	case LoseMachine:
		w.crashMachine(f.A, 0)
		w.nodes[f.A].lost = true
	case PauseServer:
		return w.pause(f.A, i.srv.p)
	case PauseManager:
		return w.pauseManager(f.A)
	case PauseWatchdog:
		return w.pauseWatchdog(f.A)
	case PauseMachine:
		return w.pauseMachine(f.A)
	case KillOperator:
		w.op.p.kill()
		w.after(nil, min(f.For, 20*time.Second), func() {
			if w.chance(50) {
				w.nodes[w.op.p.node].wall = time.Duration(w.rng.Int64N(int64(6*time.Hour))) - 3*time.Hour
			}
			w.say("operator", "starts")
			w.op.boot()
		})
	case PauseOperator:
		w.op.p.paused = true
		return func() { w.resume(w.op.p) }
	case FillVolume:
		i.srv.fill()
		return i.srv.empty
	case DeletePod, MakeReadOnly, AskSwitchover, CancelAsked, FenceInstance, MoveClock:
		return w.meddle(f)
	default:
		return w.strikeNetwork(f)
	}
	return nil
}

// meddle is what a person does.
func (w *World) meddle(f Fault) (repair func()) {
	i := w.inst[f.A]
	switch f.Kind {
	case DeletePod:
		if p := w.api.pods[f.A]; p != nil {
			w.deletePod(f.A, p.uid)
		}
	case MakeReadOnly:
		if s := i.srv; s.accepting() && s.waiting == 0 {
			s.readOnly = true
			i.mgr.noticed()
		}
	case AskSwitchover, CancelAsked:
		w.ask(f)
	case FenceInstance:
		w.fence(f.A, true)
		return func() { w.fence(f.A, false) }
	case MoveClock:
		w.nodes[(f.A+f.B)%len(w.nodes)].wall += time.Duration(w.rng.Int64N(int64(4*time.Hour))) - 2*time.Hour
	default:
		panic("nobody does this: " + string(f.Kind))
	}
	return nil
}

// ask writes targetPrimary, as a person does.
func (w *World) ask(f Fault) {
	st := w.api.cluster.c.Status.DeepCopy()
	to := name(f.A)
	if f.Kind == CancelAsked {
		to = st.CurrentPrimary
	}
	if st.TargetPrimary == to {
		return
	}
	st.TargetPrimary = to
	w.api.putCluster(w.api.cluster, st, "a person")
}

// fence writes fencedInstances, as the operator does for a person who asks for it.
func (w *World) fence(n int, on bool) {
	st := w.api.cluster.c.Status.DeepCopy()
	st.FencedInstances = slices.DeleteFunc(st.FencedInstances, func(other string) bool { return other == name(n) })
	if on {
		st.FencedInstances = append(st.FencedInstances, name(n))
		slices.Sort(st.FencedInstances)
	}
	w.api.putCluster(w.api.cluster, st, "a person")
}

// crashMachine ends everything on a machine. Of the binary log only what nobody was sent may be lost: it is
// on disk before it is sent.
func (w *World) crashMachine(n, torn int) func() {
	i := w.inst[n]
	if w.nodes[n].down {
		return nil
	}
	lost, node := torn, &w.nodes[n]
	for lost < i.srv.waiting && w.chance(50) && !w.sent(n, i.srv.log[len(i.srv.log)-1-lost].id) {
		lost++
	}
	node.down, node.paused = true, false
	i.srv.crash(lost)
	i.mgr.p.kill()
	i.watchdog.kill()
	i.kubelet.kill()
	i.armed = false
	w.op.streamLost(n)
	w.gone(n)
	return func() {
		if node.lost {
			return
		}
		node.down = false
		i.kubelet.start()
		w.say(name(n), "the machine starts")
		i.stopping = false
		w.after(i.kubelet, w.between(time.Second, 5*time.Second), i.list)
	}
}

func (w *World) sent(n int, id txn) bool {
	for _, i := range w.inst {
		if held := i.srv.contents(); i.n != n && held.has(id) {
			return true
		}
	}
	return false
}

// gone lets the node controller mark the Pod of a machine that says nothing.
func (w *World) gone(n int) {
	w.after(nil, 40*time.Second, func() {
		if w.nodes[n].down || w.nodes[n].paused || !w.net.both(n, w.net.api) {
			if p := w.api.pods[n]; p != nil {
				w.api.patchPod(n, p.uid, func(p *podObject) { p.ready = false })
			}
		}
	})
}

func (w *World) pause(n int, p *proc) func() {
	if !p.alive || p.paused {
		return nil
	}
	p.paused = true
	boot := p.boot
	return func() {
		if p.boot == boot && p.paused && !w.nodes[n].paused {
			w.noteFlows()
			w.resume(p)
			w.mendFlows()
		}
	}
}

// pauseManager stops the manager alone. Its probes fail, and the kubelet ends the container. That the watchdog
// stands still at the same time is the limit of what the product stands.
func (w *World) pauseManager(n int) func() {
	i := w.inst[n]
	if i.watchdog.paused {
		return nil
	}
	repair := w.pause(n, i.mgr.p)
	if repair == nil {
		return nil
	}
	boot := i.mgr.p.boot
	w.op.streamLost(n)
	w.after(i.kubelet, 2*time.Second, func() {
		if i.mgr.p.boot == boot && i.mgr.p.paused {
			i.status(func(p *podObject) { p.ready = false })
		}
	})
	w.after(i.kubelet, w.between(15*time.Second, 20*time.Second), func() {
		if i.mgr.p.boot == boot && i.mgr.p.paused {
			w.say(name(n), "the kubelet kills the container: the manager does not answer its probe")
			i.containerDied(0)
		}
	})
	return repair
}

// pauseWatchdog stops the watchdog. The manager notices that it does not answer and makes a new one.
func (w *World) pauseWatchdog(n int) func() {
	i := w.inst[n]
	if i.mgr.p.paused {
		return nil
	}
	repair := w.pause(n, i.watchdog)
	w.after(i.mgr.p, w.between(time.Second, 2*time.Second), func() {
		if i.watchdog.paused && !w.nodes[n].paused {
			i.watchdog.start()
			i.arm(i.killAt, i.armed)
		}
	})
	return repair
}

// pauseMachine stops everything on a machine. Its clock goes on.
func (w *World) pauseMachine(n int) func() {
	i, node := w.inst[n], &w.nodes[n]
	if node.down || node.paused {
		return nil
	}
	node.paused = true
	all := []*proc{i.watchdog, i.mgr.p, i.srv.p, i.kubelet}
	for _, p := range all {
		p.paused = true
	}
	w.op.streamLost(n)
	w.gone(n)
	return func() {
		if !node.paused {
			return
		}
		w.noteFlows()
		node.paused, node.awake = false, w.t
		w.say(name(n), "the machine goes on")
		for _, p := range all {
			if p.paused {
				w.resume(p)
			}
			if p == i.watchdog && p.alive {
				i.bark()
			}
		}
		w.mendFlows()
		w.rewatch(n)
	}
}
