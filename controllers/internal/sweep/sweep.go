package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
)

// Removed deletes the objects of removed instances, of the kinds of the given empty lists. c lists and deletes
// them, live tells whether an instance has a Pod. One object's error does not keep the others from being deleted;
// all errors are joined. An object that is gone already is none.
func Removed(ctx context.Context, c client.Client, live client.Reader, cluster *api.Cluster, kinds ...client.ObjectList) error {
	s := &sweeper{client: c, live: live, cluster: cluster, pods: map[string]bool{}}
	var failed error
	for _, list := range kinds {
		failed = errors.Join(failed, s.kind(ctx, list))
	}
	return failed
}

// Unwanted deletes the objects of a kind that belong to the Cluster as a whole and are not among the wanted names. list is
// an empty list of that kind. One object's error does not keep the others from being deleted.
func Unwanted(ctx context.Context, c client.Client, cluster *api.Cluster, list client.ObjectList, wanted []string) error {
	return each(ctx, c, cluster, list, func(o client.Object) error {
		if o.GetLabels()[api.LabelInstance] != "" || slices.Contains(wanted, o.GetName()) {
			return nil
		}
		return discard(ctx, c, o, "it is not asked for any more")
	})
}

// each goes through the objects of a kind that this very Cluster controls and that are not on their way out. All errors
// are joined.
func each(ctx context.Context, c client.Client, cluster *api.Cluster, list client.ObjectList, do func(client.Object) error) error {
	ours := []client.ListOption{client.InNamespace(cluster.Namespace), client.MatchingLabels{api.LabelCluster: cluster.Name}}
	if err := c.List(ctx, list, ours...); err != nil {
		return fmt.Errorf("listing %T: %w", list, err)
	}
	var failed error
	err := meta.EachListItem(list, func(item runtime.Object) error {
		if o, ok := item.(client.Object); ok && o.GetDeletionTimestamp() == nil && metav1.IsControlledBy(o, cluster) {
			failed = errors.Join(failed, do(o))
		}
		return nil
	})
	return errors.Join(failed, err)
}

// discard deletes the object that was looked at. One that is gone already is no error.
func discard(ctx context.Context, c client.Client, o client.Object, why string) error {
	uid := o.GetUID()
	err := c.Delete(ctx, o, client.Preconditions{UID: &uid})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("deleting %T %s (%s): %w", o, o.GetName(), why, err)
	}
	ctrl.LoggerFrom(ctx).Info("deleted", "kind", fmt.Sprintf("%T", o), "name", o.GetName(), "why", why)
	return nil
}

// sweeper is one pass over one Cluster.
type sweeper struct {
	client  client.Client
	live    client.Reader
	cluster *api.Cluster
	// pods are the answers to whether an instance has a Pod.
	pods map[string]bool
}

func (s *sweeper) kind(ctx context.Context, list client.ObjectList) error {
	return each(ctx, s.client, s.cluster, list, func(o client.Object) error { return s.object(ctx, o) })
}

// object deletes one, if its instance is gone.
func (s *sweeper) object(ctx context.Context, o client.Object) error {
	instance := o.GetLabels()[api.LabelInstance]
	if !objects.Removed(s.cluster, instance) {
		return nil
	}
	if has, err := s.hasPod(ctx, instance); has || err != nil {
		return err
	}
	return discard(ctx, s.client, o, "its instance "+instance+" was removed")
}

func (s *sweeper) hasPod(ctx context.Context, instance string) (bool, error) {
	if has, known := s.pods[instance]; known {
		return has, nil
	}
	err := s.live.Get(ctx, client.ObjectKey{Namespace: s.cluster.Namespace, Name: instance}, &corev1.Pod{})
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading Pod %s: %w", instance, err)
	}
	s.pods[instance] = err == nil
	return err == nil, nil
}
