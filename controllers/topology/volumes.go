package topology

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
)

// annotationDefaultClass marks the storage class of claims that name none.
const annotationDefaultClass = "storageclass.kubernetes.io/is-default-class"

// storageClasses are those that exist.
type storageClasses struct {
	names      []string
	hasDefault bool
}

// storageClasses are read from the API server itself: rarely, and few. An operator that may not see them
// does without.
func (r *Reconciler) storageClasses(ctx context.Context) (*storageClasses, error) {
	list := &storagev1.StorageClassList{}
	err := r.Live.List(ctx, list)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing storage classes: %w", err)
	}
	s := &storageClasses{}
	for i := range list.Items {
		s.names = append(s.names, list.Items[i].Name)
		s.hasDefault = s.hasDefault || list.Items[i].Annotations[annotationDefaultClass] == "true"
	}
	slices.Sort(s.names)
	return s, nil
}

// waits tells that a claim has no volume yet.
func waits(claim corev1.PersistentVolumeClaim) bool { return claim.Status.Phase == corev1.ClaimPending }

// volumeFacts is what matters of a claim.
func volumeFacts(c *api.Cluster, claim *corev1.PersistentVolumeClaim, data bool, classes *storageClasses) core.Volume {
	v := core.Volume{Name: claim.Name, Ours: metav1.IsControlledBy(claim, c), Terminating: claim.DeletionTimestamp != nil}
	switch {
	case claim.Status.Phase == corev1.ClaimLost:
		v.Trouble = "its volume is lost"
	case waits(*claim) && classes != nil:
		v.Trouble = classes.trouble(claim, data)
	}
	return v
}

// trouble is why no volume can come. That a claim waits for its Pod's node is not one.
func (s *storageClasses) trouble(claim *corev1.PersistentVolumeClaim, data bool) string {
	field := "spec.storage.storageClass"
	if !data {
		field = "spec.binlogStorage.storageClass"
	}
	there := "there is none"
	if len(s.names) > 0 {
		there = "there are: " + strings.Join(s.names, ", ")
	}
	switch class := claim.Spec.StorageClassName; {
	case class == nil && !s.hasDefault:
		return fmt.Sprintf("%s is not set, and there is no default storage class; storage classes: %s", field, there)
	case class != nil && *class != "" && !slices.Contains(s.names, *class):
		return fmt.Sprintf("the storage class %s (%s) does not exist; %s", *class, field, there)
	}
	return ""
}
