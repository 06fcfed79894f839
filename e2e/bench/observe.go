package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

// aspect is one thing that can change about an object.
type aspect struct{ name, value string }

// observer tells a timeline of every change of an aspect.
type observer struct {
	t    *timeline
	mu   sync.Mutex
	last map[string]string
}

func newObserver(t *timeline) *observer { return &observer{t: t, last: map[string]string{}} }

// see compares an object with how it was. One that is older than the timeline and not known yet is only noted.
func (o *observer) see(who string, object client.Object, aspects []aspect) {
	o.mu.Lock()
	defer o.mu.Unlock()
	known := o.last[who] != ""
	o.last[who] = "seen"
	for _, a := range aspects {
		key := who + " " + a.name
		before := o.last[key]
		o.last[key] = a.value
		if before == a.value || !known && object.GetCreationTimestamp().Time.Before(o.t.begin) {
			continue
		}
		o.t.add(who, "%s: %s → %s", a.name, orNone(before), orNone(a.value))
	}
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

// follow watches until ctx ends. A watch that the server ends is begun again.
func (b *bench) follow(ctx context.Context, list client.ObjectList, tell func(watch.Event), options ...client.ListOption) error {
	options = append(options, client.InNamespace(namespace))
	w, err := b.e.Client.Watch(ctx, list, options...)
	if err != nil {
		return fmt.Errorf("watching: %w", err)
	}
	go func() {
		for ctx.Err() == nil && err == nil {
			for e := range w.ResultChan() {
				tell(e)
			}
			w, err = b.e.Client.Watch(ctx, list, options...)
		}
	}()
	return nil
}

// followPods tells of the Pods with these labels.
func (b *bench) followPods(ctx context.Context, o *observer, labels client.MatchingLabels, roleLabel string) error {
	return b.follow(ctx, &corev1.PodList{}, func(e watch.Event) {
		if p, ok := e.Object.(*corev1.Pod); ok {
			aspects := podAspects(p, roleLabel)
			if e.Type == watch.Deleted {
				aspects = []aspect{{"object", "gone"}}
			}
			o.see("Pod "+p.Name, p, aspects)
		}
	}, labels)
}

func podAspects(p *corev1.Pod, roleLabel string) []aspect {
	ready, restarts := "", int32(0)
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			ready = string(c.Status)
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		restarts += s.RestartCount
	}
	return []aspect{
		{"object", string(p.UID)}, {"label role", p.Labels[roleLabel]}, {"label routable", p.Labels[api.LabelRoutable]},
		{"Ready", ready}, {"phase", string(p.Status.Phase)}, {"restarts", fmt.Sprint(restarts)},
		{"deletion", fmt.Sprint(p.DeletionTimestamp != nil)},
	}
}

// followEndpoints tells of where a Service leads.
func (b *bench) followEndpoints(ctx context.Context, o *observer, service string) error {
	return b.follow(ctx, &discoveryv1.EndpointSliceList{}, func(e watch.Event) {
		if s, ok := e.Object.(*discoveryv1.EndpointSlice); ok {
			o.see("Endpoints", s, []aspect{{service, endpoints(s)}})
		}
	}, client.MatchingLabels{discoveryv1.LabelServiceName: service})
}

func endpoints(s *discoveryv1.EndpointSlice) string {
	var list []string
	for _, e := range s.Endpoints {
		name := strings.Join(e.Addresses, ",")
		if e.TargetRef != nil {
			name = e.TargetRef.Name
		}
		if e.Conditions.Ready != nil && !*e.Conditions.Ready {
			name += " (not ready)"
		}
		list = append(list, name)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// observeCluster tells of everything that takes part in a change of primary.
func (b *bench) observeCluster(ctx context.Context, key client.ObjectKey, t *timeline) error {
	o := newObserver(t)
	for _, begin := range []func() error{
		func() error {
			return b.followPods(ctx, o, client.MatchingLabels{api.LabelCluster: key.Name}, api.LabelRole)
		},
		func() error { return b.followEndpoints(ctx, o, key.Name+"-rw") },
		func() error { return b.followStatus(ctx, o) },
		func() error { return b.followLease(ctx, o) },
		func() error { return b.followLogs(ctx, key, t) },
	} {
		if err := begin(); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) followStatus(ctx context.Context, o *observer) error {
	return b.follow(ctx, &api.ClusterList{}, func(e watch.Event) {
		if c, ok := e.Object.(*api.Cluster); ok {
			o.see("Cluster", c, clusterAspects(&c.Status))
		}
	})
}

func clusterAspects(s *api.ClusterStatus) []aspect {
	transition := ""
	if t := s.PrimaryTransition; t != nil {
		transition = fmt.Sprintf("%s %s to %s, generation %d", t.Kind, t.From, t.To, t.Generation)
	}
	return []aspect{
		{"phase", string(s.Phase)}, {"reason", s.PhaseReason}, {"targetPrimary", s.TargetPrimary}, {"transition", transition},
		{"currentPrimary", s.CurrentPrimary}, {"generation", fmt.Sprint(s.CurrentPrimaryGeneration)},
		{"readyInstances", fmt.Sprint(s.ReadyInstances)}, {"diverged", strings.Join(s.DivergedInstances, ", ")},
	}
}

func (b *bench) followLease(ctx context.Context, o *observer) error {
	return b.follow(ctx, &coordinationv1.LeaseList{}, func(e watch.Event) {
		l, ok := e.Object.(*coordinationv1.Lease)
		if !ok {
			return
		}
		holder := ""
		if l.Spec.HolderIdentity != nil {
			holder = api.HolderInstance(*l.Spec.HolderIdentity)
		}
		o.see("Lease", l, []aspect{{"holder", holder}, {"handoff for attempt", l.Annotations[api.AnnotationHandoffAttempt]}})
	})
}
