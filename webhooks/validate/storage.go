package validate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "cnmsql.co/operator/api/v1alpha1"
)

func storage(c *api.Cluster) field.ErrorList {
	errs := volume(spec.Child("storage"), &c.Spec.Storage)
	if c.Spec.BinlogStorage != nil {
		errs = append(errs, volume(spec.Child("binlogStorage"), c.Spec.BinlogStorage)...)
	}
	return errs
}

func volume(path *field.Path, s *api.StorageConfiguration) field.ErrorList {
	var errs field.ErrorList
	if s.Size.Sign() <= 0 {
		errs = append(errs, field.Invalid(path.Child("size"), s.Size.String(), "give a size above zero, for example 10Gi"))
	}
	if t := s.PVCTemplate; t != nil {
		if t.VolumeMode != nil && *t.VolumeMode == corev1.PersistentVolumeBlock {
			errs = append(errs, field.Invalid(path.Child("pvcTemplate", "volumeMode"), *t.VolumeMode, "the server needs a file system: remove it"))
		}
		if t.VolumeName != "" {
			errs = append(errs, field.Invalid(path.Child("pvcTemplate", "volumeName"), t.VolumeName, "one volume cannot serve several instances: remove it"))
		}
		if t.DataSource != nil || t.DataSourceRef != nil {
			errs = append(errs, field.Forbidden(path.Child("pvcTemplate", "dataSource"), "volumes begin empty, the operator fills them: remove it"))
		}
	}
	return errs
}

// immutable: what existing servers and volumes cannot change.
func immutable(before, after *api.Cluster) field.ErrorList {
	var errs field.ErrorList
	if before.Spec.Flavor != after.Spec.Flavor {
		errs = append(errs, field.Forbidden(spec.Child("flavor"), fmt.Sprintf("is immutable: set it back to %s", before.Spec.Flavor)))
	}
	if before.Spec.Replication.Mode != after.Spec.Replication.Mode {
		errs = append(errs, field.Forbidden(spec.Child("replication", "mode"), fmt.Sprintf("is immutable: set it back to %s", before.Spec.Replication.Mode)))
	}
	if (before.Spec.BinlogStorage == nil) != (after.Spec.BinlogStorage == nil) {
		errs = append(errs, field.Forbidden(spec.Child("binlogStorage"), "cannot be added or removed later, because existing instances have their binary logs elsewhere: set it back"))
	}
	return errs
}

func storageChange(before, after *api.Cluster) field.ErrorList {
	errs := volumeChange(spec.Child("storage"), &before.Spec.Storage, &after.Spec.Storage)
	if before.Spec.BinlogStorage != nil && after.Spec.BinlogStorage != nil {
		errs = append(errs, volumeChange(spec.Child("binlogStorage"), before.Spec.BinlogStorage, after.Spec.BinlogStorage)...)
	}
	return errs
}

func volumeChange(path *field.Path, before, after *api.StorageConfiguration) field.ErrorList {
	var errs field.ErrorList
	if after.Size.Cmp(before.Size) < 0 {
		errs = append(errs, field.Forbidden(path.Child("size"), fmt.Sprintf("cannot shrink from %s to %s: set it back", before.Size.String(), after.Size.String())))
	}
	if text(before.StorageClass) != text(after.StorageClass) || (before.StorageClass == nil) != (after.StorageClass == nil) {
		errs = append(errs, field.Forbidden(path.Child("storageClass"), "is immutable, because existing volumes cannot change it: set it back"))
	}
	return errs
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func resources(c *api.Cluster) field.ErrorList {
	var errs field.ErrorList
	r := &c.Spec.Resources
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		request, requested := r.Requests[name]
		limit, limited := r.Limits[name]
		if requested && request.Sign() < 0 {
			errs = append(errs, field.Invalid(spec.Child("resources", "requests").Key(string(name)), request.String(), "cannot be negative"))
		}
		if limited && limit.Sign() <= 0 {
			errs = append(errs, field.Invalid(spec.Child("resources", "limits").Key(string(name)), limit.String(), "give a limit above zero, or none"))
		}
		if requested && limited && request.Cmp(limit) > 0 {
			errs = append(errs, field.Invalid(spec.Child("resources", "requests").Key(string(name)), request.String(),
				fmt.Sprintf("exceeds the limit (%s): lower it or raise the limit", limit.String())))
		}
	}
	return errs
}
