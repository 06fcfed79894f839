package cmd

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/controllers/topology/facts"
	"cnmsql.co/operator/plugin/control"
)

// observer reads what the operator would look at, as the person who calls. It only reads.
type observer struct {
	o    Options
	c    client.Client
	dial control.Dialer
	// notes are what could not be read, each once, in the order in which it was met.
	mu    sync.Mutex
	notes []string
	// lease is the Lease as it was last seen.
	lease watchedLease
}

// leaseTurns is how often the Lease is looked at while it is watched.
const leaseTurns = time.Second

// watch reads until it is known whether the Lease expires, if the decision depends on that: whoever has just begun to
// look must watch for the whole time of the Lease, the operator like anybody.
func (w *observer) watch(ctx context.Context, namespace, name string) (core.Snapshot, error) {
	s, err := w.fresh(ctx, namespace, name)
	if err != nil || !leaseMatters(s) {
		return s, err
	}
	_, _ = fmt.Fprintf(w.o.Err, "watching the Lease %s for up to %s, as an operator does that has just started\n", s.Cluster.LeaseName(), api.PrimaryLeaseTTL)
	for {
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(leaseTurns):
		}
		before := w.lease.since
		l, err := w.look(ctx, s.Cluster)
		if err != nil {
			return s, err
		}
		if !l.Known || l.Holder == "" || l.Expired() || !w.lease.since.Equal(before) {
			return w.fresh(ctx, namespace, name)
		}
	}
}

// leaseMatters tells that it would make a difference if the Lease had expired.
func leaseMatters(s core.Snapshot) bool {
	if s.Lease.Free() || !s.Lease.Known {
		return false
	}
	now := core.Explain(s).Decision
	s.Fresh, s.Lease.Unchanged = true, api.PrimaryLeaseTTL
	then := core.Explain(s).Decision
	return now.Rule != then.Rule || now.Reason != then.Reason || now.Winner != then.Winner
}

// fresh reads everything until the Lease stays as it is meanwhile; a healthy one changes every 5 s.
func (w *observer) fresh(ctx context.Context, namespace, name string) (s core.Snapshot, err error) {
	for range 3 {
		if s, err = w.once(ctx, namespace, name); err != nil || s.Fresh || !s.Lease.Known {
			break
		}
	}
	return s, err
}

// once reads everything. The instances are asked between two looks at the Lease: when that did not change, what they
// say is as fresh as what the operator asks for before it elects.
func (w *observer) once(ctx context.Context, namespace, name string) (core.Snapshot, error) {
	w.notes = nil
	c, err := find(ctx, w.c, namespace, name)
	if err != nil {
		return core.Snapshot{}, err
	}
	f, err := w.objects(ctx, c)
	if err != nil {
		return core.Snapshot{}, err
	}
	if _, err := w.look(ctx, c); err != nil {
		return core.Snapshot{}, err
	}
	seen := w.lease
	f.Sights = w.ask(ctx, c, f.Pods())
	if f.Lease, err = w.look(ctx, c); err != nil {
		return core.Snapshot{}, err
	}
	f.Fresh = f.Lease.Known && w.lease == seen
	f.Now, f.NewAttempt = w.o.Now(), "not-an-attempt"
	return f.Snapshot(), nil
}

// objects reads what the API server knows. What the operator could not do without is an error here, too; the rest is
// noted.
func (w *observer) objects(ctx context.Context, c *api.Cluster) (*facts.Facts, error) {
	ours := []client.ListOption{client.InNamespace(c.Namespace), client.MatchingLabels{api.LabelCluster: c.Name}}
	pods, claims := &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
	if err := w.c.List(ctx, pods, ours...); err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	if err := w.c.List(ctx, claims, ours...); err != nil {
		return nil, fmt.Errorf("listing volume claims: %w", err)
	}
	f := facts.Of(c, pods.Items, claims.Items)
	f.Objects, f.Secrets, f.Cordoned = madeBy(pods.Items), map[string]bool{}, map[string]bool{}
	for _, name := range f.SecretNames() {
		there, err := w.secretExists(ctx, c.Namespace, name)
		if err != nil {
			return nil, err
		}
		f.Secrets[name] = there
	}
	for _, name := range f.Nodes() {
		node := &corev1.Node{}
		err := w.c.Get(ctx, client.ObjectKey{Name: name}, node)
		if apierrors.IsForbidden(err) {
			w.note("whether a node is cordoned is not known: you may not read nodes")
		} else if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading node %s: %w", name, err)
		}
		f.Cordoned[name] = node.Spec.Unschedulable
	}
	if f.WaitsForVolume() {
		list := &storagev1.StorageClassList{}
		if err := w.c.List(ctx, list); apierrors.IsForbidden(err) {
			w.note("why a volume is waited for is not known: you may not list storage classes")
		} else if err != nil {
			return nil, fmt.Errorf("listing storage classes: %w", err)
		} else {
			f.Classes = list
		}
	}
	return f, nil
}

// secretExists looks for a Secret's metadata. Whoever may not look takes it for granted.
func (w *observer) secretExists(ctx context.Context, namespace, name string) (bool, error) {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := w.c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, m)
	switch {
	case apierrors.IsForbidden(err):
		w.note("the Secrets with certificates are taken to be there: you may not read all of them")
		return true, nil
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking for Secret %s: %w", name, err)
	}
	return true, nil
}

// ask asks the manager in every Pod, all at the same time. Whom the person may not ask was not asked, which says
// nothing of it; who does not answer is silent, as the operator would see it.
func (w *observer) ask(ctx context.Context, c *api.Cluster, pods map[string]*corev1.Pod) map[string]facts.Sight {
	secret := &corev1.Secret{}
	if err := w.c.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.ClientTLSSecretName()}, secret); err != nil {
		w.note(fmt.Sprintf("no instance was asked: reading the client certificate: %s", err))
		return nil
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	sights := map[string]facts.Sight{}
	for name, pod := range pods {
		if pod.Status.PodIP == "" || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		group.Go(func() {
			report, err := w.o.Ask(ctx, w.dial, control.CredentialsOf(secret), string(c.UID), pod)
			asked := !refusedToAsk(err)
			if err != nil {
				w.note(fmt.Sprintf("%s was asked in vain: %s", name, err))
			}
			mu.Lock()
			defer mu.Unlock()
			sights[name] = facts.Sight{Report: report, Asked: asked}
		})
	}
	group.Wait()
	slices.Sort(w.notes) // they came in any order
	return sights
}

// refusedToAsk tells that the API server did not let the person through, which says nothing of the instance.
func refusedToAsk(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)
}

// madeBy are the options by which the newest Pod was made: those of the operator that runs are not to be seen.
func madeBy(pods []corev1.Pod) objects.Options {
	o, newest := objects.Options{}, time.Time{}
	for _, pod := range pods {
		for _, container := range pod.Spec.InitContainers {
			if container.Name == objects.ContainerBootstrap && !pod.CreationTimestamp.Time.Before(newest) {
				o.OperatorImage, newest = container.Image, pod.CreationTimestamp.Time
			}
		}
	}
	return o
}

func (w *observer) note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !slices.Contains(w.notes, text) {
		w.notes = append(w.notes, text)
	}
}
