package topology

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/observer"
	"cnmsql.co/operator/controllers/objects"
	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/instance/protocol"
)

// Manager is the field manager of everything that this package writes.
const Manager = "cnmsql-topology"

// soon is how long to wait before looking again when what was read turned out to be stale.
const soon = 100 * time.Millisecond

// errStale says that something was not as it was read; nothing more is done in this pass.
var errStale = errors.New("what was read is not the present state")

// Instances is what this package needs of the instances' managers.
type Instances interface {
	Follow(cluster types.NamespacedName, clusterUID string, c observer.Credentials, targets []observer.Target) error
	Forget(cluster types.NamespacedName)
	Look(cluster types.NamespacedName, instance string) observer.Sight
	Refresh(ctx context.Context, cluster types.NamespacedName) map[string]*protocol.Report
}

// Reconciler carries out what core decides.
type Reconciler struct {
	// Client reads from caches; Live reads from the API server itself; Secrets reads Secrets' metadata.
	Client  client.Client
	Live    client.Reader
	Secrets client.Reader
	// Nodes reads nodes from a cache; nil when the operator may not read them.
	Nodes client.Reader

	Instances Instances
	Events    events.EventRecorder
	Objects   objects.Options
	// Decide is core.Decide.
	Decide func(core.Snapshot) core.Decision
	// Now is a clock with a monotonic reading, NewAttempt makes an id that was never used before.
	Now        func() time.Time
	NewAttempt func() string

	leases      leases
	credentials credentials
	refusals    refusals
}

func newAttempt() string { return uuid.NewString() }

// Reconcile is one pass over one Cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	read := &api.Cluster{}
	err := r.Client.Get(ctx, req.NamespacedName, read)
	if apierrors.IsNotFound(err) {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading Cluster %s: %w", req.NamespacedName, err)
	}
	d, err := r.decide(ctx, read)
	if err == nil {
		err = r.carryOut(ctx, read, d)
	}
	if err == nil {
		err = r.budget(ctx, read, &d.Status)
	}
	return r.result(ctx, read, d, err)
}

// decide observes and decides; twice when the rules want every instance to be asked anew.
func (r *Reconciler) decide(ctx context.Context, read *api.Cluster) (core.Decision, error) {
	seen, err := r.observe(ctx, read, nil)
	if err != nil {
		return core.Decision{}, err
	}
	d := r.Decide(seen)
	if !d.Refresh {
		return d, nil
	}
	answers, err := r.refresh(ctx, read)
	if err != nil {
		return core.Decision{}, err
	}
	if seen, err = r.observe(ctx, read, answers); err != nil {
		return core.Decision{}, err
	}
	if d = r.Decide(seen); d.Refresh {
		return core.Decision{}, fmt.Errorf("the Lease changed while the instances were asked: %w", errStale)
	}
	return d, nil
}

// carryOut does what need not be committed, commits, then acts. The events of a decision that was committed are
// told even when an action fails, because no later pass comes to it again.
func (r *Reconciler) carryOut(ctx context.Context, read *api.Cluster, d core.Decision) error {
	w := &work{refused: map[string]refusal{}, failed: map[string]bool{}}
	if err := r.act(ctx, read, d.First, false, w); errors.Is(err, errStale) {
		return err
	} else if err != nil {
		w.err = err
	}
	committed, err := r.commit(ctx, read, d)
	if err != nil {
		return errors.Join(w.err, err, r.recordAnyway(ctx, read, d, err, w))
	}
	measure(read, d, committed)
	if committed || len(d.First)+len(d.Actions) > 0 {
		r.log(ctx, read, d)
	}
	ended := r.act(ctx, read, d.Actions, committed, w)
	r.tell(read, w.told)
	if committed || ended == nil && len(w.failed) == 0 {
		r.tell(read, d.Events)
	}
	if ended == nil {
		for _, text := range r.refusals.note(client.ObjectKeyFromObject(read), w.refused) {
			ctrl.LoggerFrom(ctx).Info("refused", "why", text)
		}
	}
	return errors.Join(w.err, ended)
}

// recordAnyway writes the second copy of the memory of the last failover when the first, in the status, could not be
// written: it is there for that. A conflict means that it may not be true any more.
func (r *Reconciler) recordAnyway(ctx context.Context, read *api.Cluster, d core.Decision, commit error, w *work) error {
	if apierrors.IsConflict(commit) || errors.Is(commit, errStale) {
		return nil
	}
	var records []core.Action
	for _, a := range d.Actions {
		if a.Kind == core.RecordFailover {
			records = append(records, a)
		}
	}
	if len(records) == 0 {
		return nil
	}
	return r.act(ctx, read, records, false, w)
}

// result says when to look again. A refusal is no error: it is shown, and what was refused is tried again in
// growing intervals that do not delay anything else.
func (r *Reconciler) result(ctx context.Context, read *api.Cluster, d core.Decision, err error) (ctrl.Result, error) {
	switch {
	case err == nil:
		return ctrl.Result{RequeueAfter: sooner(d.Recheck, r.refusals.again(client.ObjectKeyFromObject(read), r.Now()))}, nil
	case errors.Is(err, errStale) || apierrors.IsConflict(err):
		ctrl.LoggerFrom(ctx).V(1).Info("looking again", "why", err.Error())
		return ctrl.Result{RequeueAfter: soon}, nil
	}
	return ctrl.Result{}, err
}

// sooner is the shorter of two times after which to look again, where zero means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func (r *Reconciler) tell(c *api.Cluster, list []core.Event) {
	for _, e := range list {
		kind := corev1.EventTypeNormal
		if e.Warning {
			kind = corev1.EventTypeWarning
		}
		r.Events.Eventf(c, nil, kind, e.Reason, "Reconcile", "%s", shortened(e.Message))
	}
}

// longestNote is how many bytes the API server takes in an event.
const longestNote = 1024

// shortened is a text that an event can hold.
func shortened(text string) string {
	const dots = "…"
	if len(text) <= longestNote {
		return text
	}
	return strings.ToValidUTF8(text[:longestNote-len(dots)], "") + dots
}

func (r *Reconciler) forget(cluster types.NamespacedName) {
	r.Instances.Forget(cluster)
	r.leases.gone(cluster)
	r.refusals.forget(cluster)
	r.credentials.forget(cluster)
	unmeasure(cluster)
}
