package lease

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// The walk is a world of three instances that all want the lease all the time, on clocks of their own, with calls that
// fail, hang, get through unheard or very late, managers that stand still or start anew, and instances that are
// cut off from the API server or from each other. Its time advances in ticks.
const tick = 100 * time.Millisecond

type walk struct {
	random  *rand.Rand
	now     time.Duration
	version int
	holder  string
	nodes   []*node
	late    []func() // what is on its way
	broken  breakage
	story   []string
}

// breakage is a rule that the walk does not keep, to show that it matters.
type breakage struct {
	ignorePromise bool // who has vouched takes the lease all the same
	deafRound     bool // a silent instance counts as one that vouches
	noWatchdog    bool // nobody kills the server of a manager that stands still
}

// call is one call under way: it arrives, maybe, and is answered, maybe.
type call struct {
	started  time.Duration // by the node's clock
	arrives  time.Duration // by the walk's, like the others
	answered time.Duration
	gives    time.Duration
	version  int
	done     bool // it has arrived
	stored   bool // and got through
	seen     int  // the version that it made
}

type round struct {
	started time.Duration
	gives   time.Duration
	answers []Answer
	asks    map[string]time.Duration // when each is asked; never when it is not heard
}

type node struct {
	w        *walk
	name     string
	state    State
	offset   time.Duration
	rate     float64
	writable bool
	killBy   time.Duration
	armed    bool

	fenceEnds time.Duration // when the fence has made the server read-only
	renewal   *call
	taking    *call
	round     *round
	sees      time.Duration // when it looks at the object next
	paused    time.Duration // until when its manager stands still
	cut       time.Duration // until when it does not reach the API server
	alone     time.Duration // until when it reaches no other instance
}

func newWalk(seed uint64, times Times, broken breakage) *walk {
	w := &walk{random: rand.New(rand.NewPCG(seed, 7)), broken: broken, version: 1}
	for i := range 3 {
		name := fmt.Sprintf("c-%d", i+1)
		w.nodes = append(w.nodes, &node{
			w: w, name: name, state: New(name, times),
			offset: w.between(-time.Hour, time.Hour), rate: 0.95 + 0.1*w.random.Float64(),
		})
	}
	return w
}

func (w *walk) between(a, b time.Duration) time.Duration {
	return a + time.Duration(w.random.Int64N(int64(b-a)+1))
}

func (w *walk) oneIn(n int) bool { return w.random.IntN(n) == 0 }

func (w *walk) say(n *node, format string, args ...any) {
	w.story = append(w.story, fmt.Sprintf("%7.1fs %s %s", w.now.Seconds(), n.name, fmt.Sprintf(format, args...)))
}

func (n *node) clock() time.Duration {
	return n.offset + time.Duration(float64(n.w.now)*n.rate)
}

// run goes on for so long, and returns who are writable at the same time.
func (w *walk) run(d time.Duration) (writers int) {
	for end := w.now + d; w.now < end; w.now += tick {
		w.faults()
		for _, n := range w.nodes {
			n.arrivals()
			n.watchdog()
			if w.now >= n.paused {
				n.turn()
			}
		}
		writers = 0
		for _, n := range w.nodes {
			if n.writable {
				writers++
			}
		}
		if writers > 1 {
			return writers
		}
	}
	return writers
}

func (w *walk) faults() {
	n := w.nodes[w.random.IntN(len(w.nodes))]
	switch w.random.IntN(900) {
	case 0:
		n.cut = w.now + w.between(0, 60*time.Second)
		w.say(n, "is cut off from the API server for %s", n.cut-w.now)
	case 1:
		n.alone = w.now + w.between(0, 30*time.Second)
		w.say(n, "is cut off from the others for %s", n.alone-w.now)
	case 2:
		n.paused = w.now + w.between(0, 25*time.Second)
		w.say(n, "stands still for %s", n.paused-w.now)
	case 3:
		w.say(n, "starts anew")
		n.restart()
	case 4:
		for _, m := range w.nodes {
			m.cut = w.now + 40*time.Second
		}
		w.say(n, "and all others are cut off from the API server")
	}
}

// restart is a manager that ends: its server ends with it.
func (n *node) restart() {
	*n = node{w: n.w, name: n.name, state: New(n.name, n.state.times), offset: n.offset, rate: n.rate, cut: n.cut, alone: n.alone}
}

// newCall is one that a node begins now. One that does not reach the API server may still arrive when that is back.
func (n *node) newCall(version int) *call {
	w := n.w
	c := &call{started: n.clock(), version: version, gives: w.now + n.state.times.Call}
	c.arrives = w.now + w.between(0, n.state.times.Call)
	if w.oneIn(20) || w.now < n.cut {
		c.arrives += w.between(0, 30*time.Second)
	}
	if w.now < n.cut && w.oneIn(2) {
		c.arrives = Never
	}
	c.answered = c.arrives
	if c.arrives != Never {
		c.answered += w.between(0, time.Second)
	}
	if w.oneIn(10) {
		c.answered = Never
	}
	// It arrives whatever becomes of who has sent it.
	w.late = append(w.late, func() {
		if c.done || w.now < c.arrives {
			return
		}
		c.done = true
		if c.version == w.version {
			c.stored = true
			w.version++
			w.holder, c.seen = n.name, w.version
			w.say(n, "is the holder by a write of version %d", c.seen)
		}
	})
	return c
}

func (n *node) arrivals() {
	for _, arrive := range n.w.late {
		arrive()
	}
}

func (n *node) record(version int, holder string) Record {
	return Record{Version: fmt.Sprint(version), Holder: holder}
}

// present is the version that the node knows.
func (n *node) present() int {
	r, _ := n.state.Record()
	var v int
	_, _ = fmt.Sscan(r.Version, &v)
	return v
}

func (n *node) look() {
	if n.w.version > n.present() {
		n.state = n.state.Observe(n.clock(), n.record(n.w.version, n.w.holder))
	}
}

func (n *node) watchdog() {
	if !n.w.broken.noWatchdog && n.armed && n.clock() >= n.killBy {
		if n.writable {
			n.w.say(n, "its server is killed by the watchdog")
		}
		n.writable = false
	}
}

// turn is what a manager does at one moment. What has become due while it stood still comes first or last.
func (n *node) turn() {
	w := n.w
	steps := []func(){n.see, n.answerOfRenewal, n.answerOfTaking, n.roundGoesOn, n.fence, n.begin}
	if w.oneIn(2) {
		w.random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	}
	for _, step := range steps {
		step()
		n.killBy, n.armed = n.state.KillBy()
	}
	if n.state.InForce(n.clock()) && !n.writable && w.oneIn(5) {
		n.writable = true
		w.say(n, "opens for writes")
	}
}

func (n *node) see() {
	if n.w.now >= n.sees && n.w.now >= n.cut {
		n.look()
		n.sees = n.w.now + n.w.between(0, time.Second)
	}
}

func (n *node) answerOfRenewal() {
	c := n.renewal
	switch {
	case c == nil:
	case n.w.now >= c.answered && c.done:
		n.renewal = nil
		if c.stored {
			n.take(c)
			n.state = n.state.Renewed(c.started)
			return
		}
		n.look()
		n.state = n.state.NotRenewed(c.started)
	case n.w.now >= c.gives:
		n.renewal = nil
		n.state = n.state.NotRenewed(c.started)
	}
}

// take is the answer to one's own write: unless something newer was seen.
func (n *node) take(c *call) {
	if c.seen > n.present() {
		n.state = n.state.Observe(n.clock(), n.record(c.seen, n.name))
	}
}

func (n *node) answerOfTaking() {
	c := n.taking
	switch {
	case c == nil:
	case n.w.now >= c.answered && c.done:
		n.taking = nil
		if c.stored {
			n.take(c)
			if n.state.Mine() {
				n.state = n.state.Acquired(c.started, n.clock())
				n.w.say(n, "has taken the lease")
				return
			}
		}
		n.look()
	case n.w.now >= c.gives:
		n.taking = nil
	}
}

func (n *node) names() []string { return []string{"c-1", "c-2", "c-3"} }

func (n *node) roundGoesOn() {
	r := n.round
	if r == nil {
		return
	}
	w := n.w
	for _, m := range w.nodes {
		if at, ok := r.asks[m.name]; ok && w.now >= at && w.now >= m.paused {
			delete(r.asks, m.name)
			var a Answer
			m.state, a = m.state.Answer(m.clock(), m.name, Question{Instance: n.name, Holder: n.name}, View{})
			if w.oneIn(20) {
				continue // the answer is lost, the promise is made
			}
			r.answers = append(r.answers, a)
		}
	}
	v := Tally(n.name, n.names(), nil, r.answers)
	if w.broken.deafRound && len(v.Ask) > 0 && len(v.Ask) < 2 && w.now >= r.gives {
		v.Unanimous = true
	}
	switch {
	case v.Unanimous:
		n.state, n.round = n.state.Agreed(r.started), nil
		w.say(n, "has the word of all others")
	case w.now >= r.gives || len(v.Ask) == 0:
		n.state, n.round = n.state.Doubted(r.started), nil
	}
}

func (n *node) fence() {
	if n.fenceEnds > 0 && n.w.now >= n.fenceEnds {
		n.fenceEnds, n.writable = 0, false
		n.state = n.state.Harmless()
		n.w.say(n, "is read-only")
	}
}

func (n *node) begin() {
	w, now := n.w, n.clock()
	d := n.state.Due(now)
	if d.Kill {
		n.fenceEnds, n.writable = 0, false
		n.state = n.state.Harmless()
		w.say(n, "kills its server")
	}
	if d.Fence {
		n.state = n.state.FenceBegun(now)
		n.fenceEnds = w.now + w.between(tick, 6*time.Second)
		w.say(n, "fences: %s", d.Why)
	}
	if d.Renew && n.renewal == nil {
		n.renewal = n.newCall(n.present())
	}
	if d.Vouch && n.round == nil {
		n.round = &round{started: now, gives: w.now + n.state.times.VouchCall, asks: map[string]time.Duration{}}
		for _, m := range w.nodes {
			if m != n && w.now >= m.alone && w.now >= n.alone && !w.oneIn(30) {
				n.round.asks[m.name] = w.now + w.between(0, time.Second)
			}
		}
	}
	n.wish(now)
}

// wish is that everybody always wants the lease.
func (n *node) wish(now time.Duration) {
	may := n.state.MayAcquire(now)
	if n.w.broken.ignorePromise {
		may = may || n.state.UntilExpiry(now) == 0
	}
	if n.taking == nil && n.renewal == nil && may && !n.state.Holding() && n.w.oneIn(10) {
		n.taking = n.newCall(n.present())
	}
}

const walkLength = 10 * time.Minute

func TestNobodyElseCanTakeTheLeaseWhileAServerMayBeWritable(t *testing.T) {
	took, words, kills := 0, 0, 0
	for seed := range uint64(120) {
		w := newWalk(seed, DefaultTimes(), breakage{})
		if writers := w.run(walkLength); writers > 1 {
			t.Fatalf("seed %d: %d writers:\n%s", seed, writers, w.tail())
		}
		took += w.told("has taken the lease")
		words += w.told("has the word of all others")
		kills += w.told("is killed by the watchdog")
	}
	t.Logf("the lease was taken %d times, all vouched %d times, the watchdog killed %d servers", took, words, kills)
	if took < 300 || words < 1000 || kills < 200 {
		t.Error("the walk does not go where it should")
	}
}

// A walk that finds nothing wrong with wrong rules would say nothing about the right ones.
func TestTheWalkFindsEachRuleThatIsBroken(t *testing.T) {
	right := DefaultTimes()
	with := func(change func(*Times)) Times {
		wrong := right
		change(&wrong)
		return wrong
	}
	for name, c := range map[string]struct {
		times  Times
		broken breakage
	}{
		"killed after the lease expires": {with(func(w *Times) { w.Kill = 18 * time.Second }), breakage{}},
		"fenced and killed too late":     {with(func(w *Times) { w.Fence, w.Kill = 19*time.Second, 20*time.Second }), breakage{}},
		"watched for too short a time":   {with(func(w *Times) { w.TTL = 9 * time.Second }), breakage{}},
		"promised for too short a time":  {with(func(w *Times) { w.Promise = 6 * time.Second }), breakage{}},
		"a promise is not kept":          {right, breakage{ignorePromise: true}},
		"a silent instance counts":       {right, breakage{deafRound: true}},
		"nobody watches the manager":     {right, breakage{noWatchdog: true}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3000) {
				if newWalk(seed, c.times, c.broken).run(walkLength) > 1 {
					t.Logf("found with seed %d", seed)
					return
				}
			}
			t.Error("not found")
		})
	}
}

func (w *walk) told(what string) (n int) {
	for _, line := range w.story {
		if len(line) >= len(what) && line[len(line)-len(what):] == what {
			n++
		}
	}
	return n
}

func (w *walk) tail() string {
	out := ""
	for _, line := range w.story[max(0, len(w.story)-40):] {
		out += line + "\n"
	}
	return out
}
