package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/e2e/chaos/judge"
	"cnmsql.co/operator/e2e/framework"
)

// readEvery is how often the generation is read.
const readEvery = 200 * time.Millisecond

// history is every change of the Cluster, its Pods and its Lease, complete and in order: each watch goes on where
// it ended when the API server was away.
type history struct {
	e    *framework.Environment
	key  client.ObjectKey
	text io.Writer

	mu       sync.Mutex
	changes  []judge.Change
	readings []judge.Reading
	said     map[string]string
	pods     map[string]*corev1.Pod
	hole     error
	all      sync.WaitGroup
}

func newHistory(e *framework.Environment, key client.ObjectKey, text io.Writer) *history {
	return &history{e: e, key: key, text: text, said: map[string]string{}, pods: map[string]*corev1.Pod{}}
}

// record records until ctx ends. It begins before there is a Cluster.
func (h *history) record(ctx context.Context) {
	h.all.Go(func() { h.follow(ctx, func() client.ObjectList { return &corev1.PodList{} }, h.pod) })
	h.all.Go(func() { h.follow(ctx, func() client.ObjectList { return &api.ClusterList{} }, h.cluster) })
	h.all.Go(func() { h.follow(ctx, func() client.ObjectList { return &coordinationv1.LeaseList{} }, h.lease) })
	h.all.Go(func() { h.read(ctx) })
}

func (h *history) follow(ctx context.Context, list func() client.ObjectList, tell func(watch.EventType, client.Object)) {
	revision := ""
	for ctx.Err() == nil {
		w, err := h.e.Client.Watch(ctx, list(), &client.ListOptions{
			Namespace: h.key.Namespace, Raw: &metav1.ListOptions{ResourceVersion: revision},
		})
		if err != nil {
			select {
			case <-ctx.Done():
			case <-time.After(readEvery):
			}
			continue
		}
		for event := range w.ResultChan() {
			object, ok := event.Object.(client.Object)
			if event.Type == watch.Error || !ok {
				if ctx.Err() == nil {
					h.lost(event)
				}
				break
			}
			revision = object.GetResourceVersion()
			tell(event.Type, object)
		}
		w.Stop()
	}
}

// lost notes what a watch ended with. That the server has forgotten changes is a hole in the record.
func (h *history) lost(event watch.Event) {
	status, ok := event.Object.(*metav1.Status)
	h.say(time.Now(), "watch", fmt.Sprintf("ends: %v", event.Object))
	if ok && (status.Reason == metav1.StatusReasonExpired || status.Reason == metav1.StatusReasonGone) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.hole = errors.New("the API server has forgotten changes before they were seen: " + status.Message)
	}
}

// read reads the generation again and again.
func (h *history) read(ctx context.Context) {
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for {
		bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
		began := time.Now()
		c, err := h.e.Cluster(bounded, h.key)
		ended := time.Now()
		cancel()
		if err == nil {
			h.mu.Lock()
			h.readings = append(h.readings, judge.Reading{Began: began, Ended: ended, Generation: c.Status.CurrentPrimaryGeneration})
			h.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *history) add(c judge.Change, object client.Object) {
	c.Seen = time.Now()
	var err error
	c.Revision, err = strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil {
		h.hole = fmt.Errorf("a revision that is no number: %w", err)
	}
	h.changes = append(h.changes, c)
}

func (h *history) pod(event watch.EventType, object client.Object) {
	p, ok := object.(*corev1.Pod)
	if !ok || p.Labels[api.LabelCluster] != h.key.Name {
		return
	}
	gone := event == watch.Deleted
	h.add(judge.Change{Pod: p.Name, UID: string(p.UID), Primary: !gone && p.Labels[api.LabelRole] == api.RolePrimary}, p)
	h.mu.Lock()
	if !gone && p.Status.PodIP != "" {
		h.pods[p.Name] = p
	}
	h.mu.Unlock()
	text := fmt.Sprintf("%s role %s routable %s", p.Status.Phase, p.Labels[api.LabelRole], p.Labels[api.LabelRoutable])
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			text += " Ready " + string(c.Status)
		}
	}
	for _, s := range p.Status.ContainerStatuses {
		text += fmt.Sprintf(" restarts %d", s.RestartCount)
		if s.State.Waiting != nil {
			text += " " + s.State.Waiting.Reason
		}
	}
	if p.DeletionTimestamp != nil {
		text += " being deleted"
	}
	if gone {
		text = "gone"
	}
	h.say(time.Now(), "Pod "+p.Name+" "+string(p.UID)[:8]+" on "+p.Spec.NodeName, text)
}

func (h *history) cluster(_ watch.EventType, object client.Object) {
	c, ok := object.(*api.Cluster)
	if !ok || c.Name != h.key.Name {
		return
	}
	s := &c.Status
	h.add(judge.Change{CurrentPrimary: s.CurrentPrimary, Generation: s.CurrentPrimaryGeneration}, c)
	text := fmt.Sprintf("%s, primary %s in generation %d, target %s", framework.Describe(c), s.CurrentPrimary, s.CurrentPrimaryGeneration, s.TargetPrimary)
	if t := s.PrimaryTransition; t != nil {
		text += fmt.Sprintf(", %s %s to %s for generation %d", t.Kind, t.From, t.To, t.Generation)
	}
	if len(s.DivergedInstances) > 0 {
		text += ", diverged: " + strings.Join(s.DivergedInstances, " ")
	}
	h.say(time.Now(), "Cluster", text)
}

func (h *history) lease(_ watch.EventType, object client.Object) {
	l, ok := object.(*coordinationv1.Lease)
	if !ok {
		return
	}
	holder := "nobody"
	if l.Spec.HolderIdentity != nil && *l.Spec.HolderIdentity != "" {
		holder = *l.Spec.HolderIdentity
	}
	h.say(time.Now(), "Lease "+l.Name, "held by "+holder)
}

// say writes a line of the timeline unless it says again what the last one of its kind did.
func (h *history) say(at time.Time, who, what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.said[who] == what {
		return
	}
	h.said[who] = what
	_, _ = fmt.Fprintf(h.text, "%s  %-34s %s\n", at.UTC().Format("15:04:05.000"), who, what)
}

// ip is an instance's address as last seen.
func (h *history) ip(instance string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.pods[instance]; p != nil {
		return p.Status.PodIP
	}
	return ""
}

// recorded are copies of everything so far.
func (h *history) recorded() ([]judge.Change, []judge.Reading, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]judge.Change(nil), h.changes...), append([]judge.Reading(nil), h.readings...), h.hole
}
