package topology

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/apply"
	"cnmsql.co/operator/controllers/objects"
	"cnmsql.co/operator/controllers/topology/core"
)

// work is what came of the actions of one pass.
type work struct {
	// told are the events of what was done.
	told []core.Event
	// refused is what the API server refused, by instance.
	refused map[string]refusal
	// failed are the instances for which something could not be done.
	failed map[string]bool
	// unlabelled tells that a label could not be changed.
	unlabelled bool
	// err joins what failed otherwise.
	err error
}

// held tells that an action has to wait for a better pass: one before it, for the same instance, was not done; or
// it gives the primary's label, and another label may still have to be taken away.
func (w *work) held(a core.Action) bool {
	return w.failed[a.Instance] || w.unlabelled && a.Kind == core.LabelPod && a.Role == api.RolePrimary
}

// fail notes an action that was not done.
func (w *work) fail(a core.Action, err error, now time.Time) {
	w.failed[a.Instance] = true
	w.unlabelled = w.unlabelled || a.Kind == core.LabelPod
	if f, ok := refused(a, err, now); ok {
		w.refused[a.Instance] = f
		return
	}
	w.err = errors.Join(w.err, fmt.Errorf("%s %s: %w", a.Kind, a.Instance, err))
}

// act carries out actions in order. What fails for one instance does not keep another from being helped. Its error
// is that nothing more may be done in this pass. committed tells that the API server has just accepted a write to
// the very Cluster that was read.
func (r *Reconciler) act(ctx context.Context, read *api.Cluster, actions []core.Action, committed bool, w *work) error {
	if len(actions) == 0 {
		return nil
	}
	if !committed {
		if err := r.proveFresh(ctx, read); err != nil {
			return err
		}
	}
	c := read.DeepCopy()
	c.Default()
	for _, a := range actions {
		if w.held(a) {
			continue
		}
		err := r.do(ctx, c, a)
		switch {
		case apierrors.IsConflict(err):
			return fmt.Errorf("%s %s: %w: %w", a.Kind, a.Instance, errStale, err)
		case errors.Is(err, errStale) || err != nil && ctx.Err() != nil:
			return fmt.Errorf("%s %s: %w", a.Kind, a.Instance, err)
		case err != nil:
			w.fail(a, err, r.Now())
		case a.Done != nil:
			w.told = append(w.told, *a.Done)
		}
	}
	return nil
}

func (r *Reconciler) do(ctx context.Context, c *api.Cluster, a core.Action) error {
	switch a.Kind {
	case core.CreateVolumes:
		for _, claim := range objects.PVCs(c, a.Instance) {
			if err := r.create(ctx, c, claim); err != nil {
				return err
			}
		}
		return nil
	case core.CreatePod:
		return r.create(ctx, c, objects.Pod(c, a.Instance, r.Objects))
	case core.DeletePod:
		return r.deletePod(ctx, c, a)
	case core.LabelPod:
		return r.labelPod(ctx, c, a)
	case core.RecordFailover:
		return r.recordFailover(ctx, c, a)
	case core.ClearAcceptLoss:
		return r.clearAcceptLoss(ctx, c, a)
	}
	return fmt.Errorf("there is no action %q", a.Kind)
}

// create makes an object. One of its name that is there already is right if it is the Cluster's.
func (r *Reconciler) create(ctx context.Context, c *api.Cluster, o client.Object) error {
	err := r.Client.Create(ctx, o, client.FieldOwner(Manager))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	gvk, err := apiutil.GVKForObject(o, r.Client.Scheme())
	if err != nil {
		return err
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(gvk)
	err = r.Live.Get(ctx, client.ObjectKeyFromObject(o), there)
	if apierrors.IsNotFound(err) {
		return errStale
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", gvk.Kind, o.GetName(), err)
	}
	if !metav1.IsControlledBy(there, c) {
		return &apply.ForeignError{Kind: gvk.Kind, Name: o.GetName()}
	}
	return nil
}

// deletePod deletes the Pod that was meant. Another one of its name is left alone.
func (r *Reconciler) deletePod(ctx context.Context, c *api.Cluster, a core.Action) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: a.Instance}}
	uid := types.UID(a.PodUID)
	err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &uid})
	return client.IgnoreNotFound(err)
}

// labelPod shows a role on the Pod that was meant.
func (r *Reconciler) labelPod(ctx context.Context, c *api.Cluster, a core.Action) error {
	pod := &corev1.Pod{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: a.Instance}, pod)
	if apierrors.IsNotFound(err) || err == nil && string(pod.UID) != a.PodUID {
		return errStale
	}
	if err != nil {
		return err
	}
	if a.Role == api.RolePrimary {
		if err := r.noOtherPrimary(ctx, c, a.Instance); err != nil {
			return err
		}
	}
	patch, err := labels(a)
	if err != nil {
		return err
	}
	err = r.Client.Patch(ctx, pod.DeepCopy(), patch, client.FieldOwner(Manager))
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) && r.replaced(ctx, pod) {
		return fmt.Errorf("%w: %w", errStale, err)
	}
	return err
}

// replaced tells that there is another Pod of this name now.
func (r *Reconciler) replaced(ctx context.Context, pod *corev1.Pod) bool {
	live := &corev1.Pod{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(pod), live)
	return err == nil && live.UID != pod.UID
}

// recordFailover writes the second copy of the memory of the last failover: all of it in one patch, which fails on any
// other Cluster of this name.
func (r *Reconciler) recordFailover(ctx context.Context, c *api.Cluster, a core.Action) error {
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": c.UID, "annotations": a.Record.Annotations()}})
	if err != nil {
		return fmt.Errorf("writing the annotations: %w", err)
	}
	there := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	err = r.Client.Patch(ctx, there, client.RawPatch(types.MergePatchType, text), client.FieldOwner(Manager))
	return client.IgnoreNotFound(err)
}

// clearAcceptLoss removes the annotation that was answered. Another one, written meanwhile, stays.
func (r *Reconciler) clearAcceptLoss(ctx context.Context, c *api.Cluster, a core.Action) error {
	path := "/metadata/annotations/" + strings.ReplaceAll(api.AnnotationAcceptLoss, "/", "~1")
	text, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": c.UID},
		{"op": "test", "path": path, "value": a.Value},
		{"op": "remove", "path": path},
	})
	if err != nil {
		return fmt.Errorf("removing the annotation: %w", err)
	}
	there := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
	err = r.Client.Patch(ctx, there, client.RawPatch(types.JSONPatchType, text), client.FieldOwner(Manager))
	if apierrors.IsNotFound(err) || apierrors.IsInvalid(err) {
		return fmt.Errorf("%w: %w", errStale, err)
	}
	return err
}

// labels is the change of the labels alone, whatever else changes the Pod at the same time; the UID in it makes
// it fail on any other Pod.
func labels(a core.Action) (client.Patch, error) {
	role := any(a.Role)
	if a.Role == "" {
		role = nil
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":    a.PodUID,
		"labels": map[string]any{api.LabelRole: role, api.LabelRoutable: strconv.FormatBool(a.Routable)},
	}})
	if err != nil {
		return nil, fmt.Errorf("writing the labels: %w", err)
	}
	return client.RawPatch(types.MergePatchType, text), nil
}

// noOtherPrimary asks the API server itself: the cache may not show yet what was labelled a moment ago.
func (r *Reconciler) noOtherPrimary(ctx context.Context, c *api.Cluster, instance string) error {
	pods := &corev1.PodList{}
	err := r.Live.List(ctx, pods, client.InNamespace(c.Namespace),
		client.MatchingLabels{api.LabelCluster: c.Name, api.LabelRole: api.RolePrimary})
	if err != nil {
		return fmt.Errorf("looking for the primary's label: %w", err)
	}
	for i := range pods.Items {
		if pods.Items[i].Name != instance {
			return fmt.Errorf("%s still carries the primary's label: %w", pods.Items[i].Name, errStale)
		}
	}
	return nil
}
