package objects

import (
	corev1 "k8s.io/api/core/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// PVCs are the volume claims of one instance: its data, and its binary logs where they have a volume of
// their own.
func PVCs(c *api.Cluster, instance string) []*corev1.PersistentVolumeClaim {
	claims := []*corev1.PersistentVolumeClaim{pvc(c, instance, instance, &c.Spec.Storage)}
	if c.Spec.BinlogStorage != nil {
		claims = append(claims, pvc(c, instance, api.BinlogPVCName(instance), c.Spec.BinlogStorage))
	}
	return claims
}

func pvc(c *api.Cluster, instance, name string, s *api.StorageConfiguration) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: instanceMeta(c, instance, name)}
	if s.PVCTemplate != nil {
		s.PVCTemplate.DeepCopyInto(&claim.Spec)
	}
	if len(claim.Spec.AccessModes) == 0 {
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	if s.StorageClass != nil {
		claim.Spec.StorageClassName = new(*s.StorageClass)
	}
	if claim.Spec.Resources.Requests == nil {
		claim.Spec.Resources.Requests = corev1.ResourceList{}
	}
	claim.Spec.Resources.Requests[corev1.ResourceStorage] = s.Size
	return claim
}
