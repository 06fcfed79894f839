package fencing

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/status"
)

func (r *Reconciler) act(ctx context.Context, c *api.Cluster, asking []corev1.Pod, d decision) error {
	if d.annotation != nil {
		// The version makes it fail when the annotation may have been changed meanwhile.
		there := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name}}
		if err := r.annotate(ctx, there, map[string]any{"uid": c.UID, "resourceVersion": c.ResourceVersion}, *d.annotation); err != nil {
			return fmt.Errorf("moving a request for a fence to the Cluster: %w", err)
		}
		c = c.DeepCopy()
		c.ResourceVersion = there.ResourceVersion
	}
	for i := range asking {
		there := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: asking[i].Name}}
		err := r.annotate(ctx, there, map[string]any{"uid": asking[i].UID}, nil)
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("removing the request from the Pod %s: %w", asking[i].Name, err)
		}
	}
	// As a whole, whoever wrote it before: what a backup brought back would otherwise never be removed.
	changed := c.DeepCopy()
	changed.Status.FencedInstances = d.fenced
	if _, err := status.Patch(ctx, r.Client, Manager, c, changed); err != nil {
		return err
	}
	r.tell(c, d)
	_, err := status.Apply(ctx, r.Client, Manager, c, status.Owns{}, status.Fields{Conditions: []metav1.Condition{d.condition}})
	return err
}

// annotate writes or, with nil, removes the annotation on the object that these fields tell from any other.
func (r *Reconciler) annotate(ctx context.Context, o client.Object, only map[string]any, value any) error {
	only["annotations"] = map[string]any{api.AnnotationFencing: value}
	text, err := json.Marshal(map[string]any{"metadata": only})
	if err != nil {
		return fmt.Errorf("writing the annotation: %w", err)
	}
	return r.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, text), client.FieldOwner(Manager))
}

func (r *Reconciler) tell(c *api.Cluster, d decision) {
	say := func(kind, reason, format string, args ...any) {
		r.Events.Eventf(c, nil, kind, reason, "Fence", format, args...)
	}
	for _, name := range d.began {
		say(corev1.EventTypeWarning, api.EventFenced, "%s is fenced: it leaves every Service and its server stops; kubectl cnmsql fence off %s %s ends that", name, c.Name, name)
	}
	for _, name := range d.ended {
		say(corev1.EventTypeNormal, api.EventUnfenced, "%s is not fenced any more", name)
	}
	if d.condition.Reason == api.ReasonUnknownInstance && status.Changed(c, d.condition) {
		say(corev1.EventTypeWarning, api.EventFencingRefused, "%s", status.Note(d.condition.Message))
	}
}
