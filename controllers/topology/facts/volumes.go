package facts

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
)

// annotationDefaultClass marks the storage class of claims that name none.
const annotationDefaultClass = "storageclass.kubernetes.io/is-default-class"

// annotationSelectedNode is set by the scheduler on a claim that is to have its volume now, on that node.
const annotationSelectedNode = "volume.kubernetes.io/selected-node"

// storageClasses are those that exist.
type storageClasses struct {
	names []string
	of    map[string]*storagev1.StorageClass
	// standard is the one of claims that name none; empty when there is none.
	standard string
}

// classesOf is nil when the classes are not known.
func classesOf(list *storagev1.StorageClassList) *storageClasses {
	if list == nil {
		return nil
	}
	s := &storageClasses{of: map[string]*storagev1.StorageClass{}}
	for i := range list.Items {
		class := &list.Items[i]
		s.names = append(s.names, class.Name)
		s.of[class.Name] = class
		if class.Annotations[annotationDefaultClass] == "true" {
			s.standard = class.Name
		}
	}
	slices.Sort(s.names)
	return s
}

// waits tells that a claim has no volume yet.
func waits(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.Phase == corev1.ClaimPending
}

// volumeFacts is what matters of a claim for an instance's data, or for its binary logs; pod is the instance's,
// nil when there is none.
func (s *storageClasses) volumeFacts(c *api.Cluster, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod, w *patience) core.Volume {
	v := core.Volume{Name: claim.Name, Ours: metav1.IsControlledBy(claim, c), Terminating: claim.DeletionTimestamp != nil}
	what, field := asked(c, claim)
	if has := claim.Spec.Resources.Requests[corev1.ResourceStorage]; has.Cmp(what.Size) < 0 {
		v.Small = fmt.Sprintf("asks for %s and %s.size is %s", has.String(), field, what.Size.String())
	}
	if claim.Status.Phase == corev1.ClaimLost {
		v.Trouble = "its volume is lost"
	}
	if waits(claim) && s != nil && !v.Terminating {
		field := classField(c, claim)
		if v.Trouble = s.missing(claim, field); v.Trouble == "" {
			v.Trouble = s.unserved(claim, field, pod, w)
		}
	}
	return v
}

// asked is what the specification says of the volume of a claim, and where.
func asked(c *api.Cluster, claim *corev1.PersistentVolumeClaim) (what *api.StorageConfiguration, field string) {
	if c.Spec.BinlogStorage != nil && claim.Name == api.BinlogPVCName(claim.Labels[api.LabelInstance]) {
		return c.Spec.BinlogStorage, "spec.binlogStorage"
	}
	return &c.Spec.Storage, "spec.storage"
}

// classField is the field that names the class of a claim, or would.
func classField(c *api.Cluster, claim *corev1.PersistentVolumeClaim) string {
	what, field := asked(c, claim)
	if what.StorageClass == nil && what.PVCTemplate != nil && what.PVCTemplate.StorageClassName != nil {
		return field + ".pvcTemplate.storageClassName"
	}
	return field + ".storageClass"
}

// missing is why no volume can come: the class is not there. A claim cannot be given another.
func (s *storageClasses) missing(claim *corev1.PersistentVolumeClaim, field string) string {
	there := "there is none"
	if len(s.names) > 0 {
		there = "there are: " + strings.Join(s.names, ", ")
	}
	switch class := claim.Spec.StorageClassName; {
	case class == nil && s.standard == "":
		return fmt.Sprintf("%s is not set, and there is no default storage class; storage classes: %s; mark a class as the default, or delete the Cluster and make it again with one that is named", field, there)
	case class != nil && *class != "" && s.of[*class] == nil:
		return fmt.Sprintf("the storage class %s (%s) does not exist; %s; create that class, or delete the Cluster and make it again with one that exists", *class, field, there)
	}
	return ""
}

// unserved is that a volume does not come although it was asked for. Before a claim that waits for its Pod has a
// node, the Pod tells.
func (s *storageClasses) unserved(claim *corev1.PersistentVolumeClaim, field string, pod *corev1.Pod, w *patience) string {
	name := s.standard
	if claim.Spec.StorageClassName != nil {
		name = *claim.Spec.StorageClassName
	}
	class := s.of[name]
	if class == nil {
		return ""
	}
	since := claim.CreationTimestamp.Time
	if mode := class.VolumeBindingMode; mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer {
		if claim.Annotations[annotationSelectedNode] == "" || pod == nil {
			return ""
		}
		// The node was chosen after the Pod was made; when, nobody tells.
		if made := pod.CreationTimestamp.Time; made.After(since) {
			since = made
		}
	}
	if !w.over(since, volumePatience) {
		return ""
	}
	return fmt.Sprintf("the provisioner %s of the storage class %s (%s) has not made its volume: see that it runs, and kubectl describe pvc %s",
		class.Provisioner, name, field, claim.Name)
}
