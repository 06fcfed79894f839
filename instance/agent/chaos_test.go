package agent

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/lease"
	"cnmsql.co/operator/instance/protocol"
)

// rival is another instance that takes the role whenever the rules of the lease let it, and gives it back.
type rival struct {
	w      *world
	random *rand.Rand
	taken  int

	mu    sync.Mutex
	state lease.State
}

// vouch answers like any other instance that sees the lease at once.
func (r *rival) vouch(q protocol.VouchQuestion) protocol.VouchAnswer {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, a := r.state.Answer(r.w.clock.Now(), "c-3", lease.Question(q), ViewOf(r.w.api.present(), "c-3"))
	r.state = s
	return protocol.VouchAnswer(a)
}

// may tells whether the rules let it take the lease now.
func (r *rival) may() (holder string, may bool) {
	a := r.w.api
	a.mu.Lock()
	record := recordOf(a.lease)
	a.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.w.clock.Now()
	r.state = r.state.Observe(now, record)
	return record.Holder, r.state.MayAcquire(now)
}

// run watches the Lease as a candidate does, without any fault of its own: it is the hardest rival.
func (r *rival) run(ctx context.Context) error {
	for ctx.Err() == nil {
		sleep(ctx, 20*time.Millisecond)
		holder, free := r.may()
		wants := r.w.api.present().Status.CurrentPrimary != "c-3" && (holder != "" || r.random.IntN(50) == 0)
		if free && wants {
			r.take(ctx)
		}
	}
	return nil
}

// take is an acquisition, a promotion, a time as the primary, and a hand-over back.
func (r *rival) take(ctx context.Context) {
	a := r.w.api
	a.hold("c-3/1")
	a.change(func(s *api.ClusterStatus) {
		s.CurrentPrimary, s.CurrentPrimaryGeneration, s.PrimaryTransition = "c-3", s.CurrentPrimaryGeneration+1, nil
		s.PromotionGTIDExecuted = uuidA + ":1-100"
	})
	r.w.peers.say(r.w.t, "c-3", uuidC, a.status().CurrentPrimaryGeneration, uuidA+":1-100")
	r.taken++
	for range r.random.IntN(40) {
		if r.w.server.now().Writable() {
			r.w.t.Errorf("two writers at %s", r.w.clock.Now())
		}
		sleep(ctx, time.Second)
	}
	a.mu.Lock()
	l := a.lease.DeepCopy()
	l.Spec.HolderIdentity = nil
	a.storeLease(l)
	a.mu.Unlock()
	a.change(func(s *api.ClusterStatus) {
		s.PrimaryTransition = &api.PrimaryTransition{
			Attempt: fmt.Sprint(r.taken), Kind: api.TransitionFailover, From: "c-3", To: self, Generation: s.CurrentPrimaryGeneration + 1,
		}
	})
}

// fault begins something bad, and returns how it ends.
func (w *world) fault(random *rand.Rand) func() {
	w.voters.reached.Store(random.IntN(3) > 0)
	switch random.IntN(6) {
	case 0:
		w.api.outage(true, false)
		return func() { w.api.outage(false, false) }
	case 1:
		w.api.outage(false, true)
		return func() { w.api.outage(false, false) }
	case 2:
		w.api.mu.Lock()
		w.api.lost = 1 + random.IntN(3)
		w.api.mu.Unlock()
		return func() {}
	case 3:
		w.server.mu.Lock()
		w.server.hangs = true
		w.server.mu.Unlock()
		return func() {
			w.server.mu.Lock()
			w.server.hangs = false
			w.server.mu.Unlock()
		}
	case 4:
		w.server.Kill()
		return func() {}
	default:
		w.api.endWatches()
		return func() {}
	}
}

// supervise starts a server again that has ended, as mysqld.Supervisor does.
func (w *world) supervise(ctx context.Context) error {
	for ctx.Err() == nil {
		st, changed := w.server.Watch()
		if st.Pid == 0 {
			sleep(ctx, 2*time.Second)
			w.server.mu.Lock()
			w.server.hangs = false // a new process
			w.server.mu.Unlock()
			w.server.become(protocol.ServerRunning, 10)
			continue
		}
		select {
		case <-ctx.Done():
		case <-changed:
		}
	}
	return nil
}

// vouched counts the moments in which a server was writable by the word of the others alone.
var vouched int

// Whatever fails, the server is never writable when a rival may be, and whenever nothing fails for a while
// somebody serves.
func TestThereIsNeverASecondWriterAndSoonAFirst(t *testing.T) {
	served, taken, asked := 0, 0, 0
	for seed := range uint64(25) {
		bubble(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			w := newWorld(t)
			w.primary()
			slow := random.IntN(2) == 0
			w.api.latency = func() time.Duration {
				if slow {
					return 300 * time.Millisecond
				}
				return time.Millisecond
			}
			r := &rival{w: w, random: rand.New(rand.NewPCG(seed, 8)), state: lease.New("c-3/1", leaseTimes)}
			w.voters.live = func(instance string, q protocol.VouchQuestion) (protocol.VouchAnswer, bool) {
				switch {
				case !w.voters.reached.Load():
					return protocol.VouchAnswer{}, false
				case instance == "c-3":
					return r.vouch(q), true
				}
				return protocol.VouchAnswer{From: instance, Vouches: true}, true
			}
			w.start()
			background(t, w.supervise, r.run)
			for range 40 {
				end := w.fault(random)
				for range random.IntN(250) {
					time.Sleep(100 * time.Millisecond)
					w.watch(seed)
				}
				end()
				for range random.IntN(400) {
					time.Sleep(100 * time.Millisecond)
					w.watch(seed)
				}
			}
			for range 1200 {
				time.Sleep(100 * time.Millisecond)
				w.watch(seed)
				if w.server.now().Writable() {
					served++
					break
				}
			}
			synctest.Wait()
			if !w.server.now().Writable() {
				t.Errorf("seed %d: nobody serves two minutes after the last fault: %+v; %s", seed, w.api.status(), w.reporter.Report().Role.Doing)
			}
			taken += r.taken
			asked += len(w.voters.asked)
		})
	}
	if served == 0 || taken == 0 {
		t.Errorf("served %d times, taken by the rival %d times: nothing was tried", served, taken)
	}
	t.Logf("the rival took the role %d times, others were asked %d times, a server was writable %d times by their word alone", taken, asked, vouched)
	if vouched == 0 {
		t.Error("no server was ever writable by the word of the others")
	}
}

// watch asserts what must hold at every instant for a writable server.
func (w *world) watch(seed uint64) {
	w.t.Helper()
	if !w.server.now().Writable() {
		return
	}
	w.api.mu.Lock()
	defer w.api.mu.Unlock()
	age := w.clock.Now() - w.api.renewals[len(w.api.renewals)-1]
	word := w.keeper.State().Vouched
	if word {
		vouched++
	}
	switch {
	case holderOf(w.api.lease) != self+"/1":
		w.t.Fatalf("seed %d: writable while %q holds the lease", seed, holderOf(w.api.lease))
	case age > leaseTimes.Kill+200*time.Millisecond && !word:
		w.t.Fatalf("seed %d: writable %s after the last renewal", seed, age)
	case w.api.cluster.Status.CurrentPrimary != self:
		w.t.Fatalf("seed %d: writable while %q is the primary", seed, w.api.cluster.Status.CurrentPrimary)
	}
}
