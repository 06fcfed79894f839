package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"cnmsql.co/operator/e2e/chaos/plan"
	"cnmsql.co/operator/e2e/framework"
)

// Limits of a round.
const (
	// readyWithin is how long after the last repair the Cluster may take until all is well.
	readyWithin = 5 * time.Minute
	// writableWithin is how long after the last repair clients may have to wait for their first acknowledgement.
	writableWithin = 150 * time.Second
	// beginWithin is how long it may take to do a fault.
	beginWithin = 30 * time.Second
	// calm is for how long writes must have been acknowledged, with no pause above calmPause, before a round is over.
	calm       = 3 * time.Second
	calmPause  = time.Second
	calmWithin = 2 * time.Minute
)

// scene is who is who when a round begins.
type scene struct {
	r          *runner
	primary    string
	replicas   []string
	nodes      map[string]string
	allNodes   []string
	generation int64
	began      time.Time
}

func (s *scene) instance(t plan.Target) string {
	switch t {
	case plan.Primary:
		return s.primary
	case plan.First:
		return s.replicas[0]
	case plan.Second:
		return s.replicas[1]
	default:
		return ""
	}
}

// look finds out.
func (r *runner) look(ctx context.Context) (*scene, error) {
	c, err := r.e.Cluster(ctx, r.key)
	if err != nil {
		return nil, err
	}
	pods, err := r.e.Pods(ctx, r.key)
	if err != nil {
		return nil, err
	}
	s := &scene{r: r, primary: c.Status.CurrentPrimary, generation: c.Status.CurrentPrimaryGeneration, nodes: map[string]string{}, began: time.Now()}
	for _, p := range pods {
		s.nodes[p.Name] = p.Spec.NodeName
		if p.Name != s.primary {
			s.replicas = append(s.replicas, p.Name)
		}
	}
	slices.Sort(s.replicas)
	if s.primary == "" || len(s.replicas) != instances-1 {
		return nil, fmt.Errorf("primary %q, replicas %v: not a Cluster of %d that is well", s.primary, s.replicas, instances)
	}
	nodes := &corev1.NodeList{}
	if err := r.e.Client.List(ctx, nodes); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	for _, n := range nodes.Items {
		s.allNodes = append(s.allNodes, n.Name)
	}
	return s, nil
}

// outcome is what became of a fault.
type outcome struct {
	fault    plan.Fault
	instance string
	began    time.Time
	said     []string
	// impossible is why it could not be done; repair is why it could not be repaired.
	impossible, repair error
	// still is the longest time without an acknowledged write that this fault was part of.
	still time.Duration
}

// result is what became of a round.
type result struct {
	plan       plan.Round
	outcomes   []*outcome
	from, to   string // the primary before and after
	promotions int64
	service    time.Duration // the longest pauses
	direct     time.Duration
	since      time.Time     // when the longest through the Service began
	writable   time.Duration // from the last repair to the first acknowledgement
	ready      time.Duration // and until all was well
	madeAnew   []string
	took       time.Duration
	found      findings
	broken     error
}

// round does the faults of a round, repairs them, waits until all is well, and judges.
func (r *runner) round(ctx context.Context, p plan.Round) (*result, error) {
	res := &result{plan: p}
	s, err := r.look(ctx)
	if err != nil {
		res.broken = err
		return res, err
	}
	r.say("%s", p)
	res.from, res.to = s.primary, s.primary
	res.outcomes = s.perform(ctx, p.Faults)
	repaired := time.Now()
	err = r.settle(ctx, res, repaired)
	for _, o := range res.outcomes {
		if o.repair != nil {
			err = errors.Join(err, fmt.Errorf("%s could not be repaired: %w", o.fault.Kind, o.repair))
		}
	}
	end := time.Now()
	res.took = end.Sub(s.began)
	res.since, res.service = r.clients.service.Pause(s.began, end)
	res.direct = r.clients.direct.Gap(s.began, end)
	for _, o := range res.outcomes {
		o.still = r.clients.service.Gap(o.began, end)
	}
	if err == nil {
		res.found, err = r.check(ctx)
	}
	if c, readErr := r.e.Cluster(ctx, r.key); readErr == nil {
		res.to, res.promotions = c.Status.CurrentPrimary, c.Status.CurrentPrimaryGeneration-s.generation
	}
	res.broken = err
	return res, err
}

// perform does every fault at its time, and repairs it at its time, whatever happens to the others. When ctx ends, all is
// repaired at once.
func (s *scene) perform(ctx context.Context, faults []plan.Fault) []*outcome {
	var all sync.WaitGroup
	outcomes := make([]*outcome, len(faults))
	for i, f := range faults {
		o := &outcome{fault: f, instance: s.instance(f.Target), began: time.Now()}
		outcomes[i] = o
		all.Go(func() { s.one(ctx, s.make(f), o) })
	}
	all.Wait()
	return outcomes
}

func (s *scene) one(ctx context.Context, f fault, o *outcome) {
	if !pause(ctx, time.Until(s.began.Add(o.fault.At))) {
		o.impossible = ctx.Err()
		return
	}
	who := "fault " + string(o.fault.Kind)
	s.r.history.say(time.Now(), who, "begins: "+o.instance)
	bounded, cancel := context.WithTimeout(ctx, beginWithin)
	o.began = time.Now()
	said, err := f.begin(bounded)
	cancel()
	o.note(said)
	if err != nil {
		o.impossible = err
		s.r.history.say(time.Now(), who, "could not be done: "+brief(err))
	} else {
		s.r.history.say(time.Now(), who, "done: "+said)
		pause(ctx, o.fault.For)
	}
	repairing, cancel := context.WithTimeout(context.WithoutCancel(ctx), healWithin)
	defer cancel()
	said, o.repair = f.heal(repairing)
	o.note(said)
	if o.repair != nil {
		said = o.repair.Error()
	}
	s.r.history.say(time.Now(), who, "over: "+said)
}

func (o *outcome) note(said string) {
	if said != "" {
		o.said = append(o.said, said)
	}
}

// pause waits, and tells whether it was to the end.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// settle waits until the Cluster says that all is well and clients are served without pauses. An instance that has
// diverged is made anew, as its documentation says; that nothing acknowledged was on it alone is checked later.
func (r *runner) settle(ctx context.Context, res *result, repaired time.Time) error {
	err := r.e.AwaitHealed(ctx, r.key, readyWithin, func(now string) {
		if strings.Contains(now, "making it anew") {
			res.madeAnew = append(res.madeAnew, now)
		}
		r.history.say(time.Now(), "chaos", now)
	})
	if err != nil {
		return err
	}
	err = framework.Await(ctx, "calm writes", calmWithin, func(ctx context.Context) (bool, string, error) {
		now := time.Now()
		service, direct := r.clients.service.Gap(now.Add(-calm), now), r.clients.direct.Gap(now.Add(-calm), now)
		c, err := r.e.Cluster(ctx, r.key)
		if err != nil {
			return false, "", err
		}
		done := now.Sub(repaired) >= calm && max(service, direct) < calmPause && framework.Ready(c)
		_, last := r.clients.service.Errors()
		return done, fmt.Sprintf("%s; pauses of %s and %s; the last error: %v", framework.Describe(c), service, direct, last), nil
	})
	if err != nil {
		return err
	}
	res.ready = time.Since(repaired)
	res.writable = max(0, r.clients.service.First(repaired).Sub(repaired))
	if res.writable > writableWithin {
		return fmt.Errorf("clients waited %s after the last repair for an acknowledgement; %s are allowed", res.writable, writableWithin)
	}
	return nil
}
