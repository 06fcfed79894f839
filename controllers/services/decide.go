package services

import (
	corev1 "k8s.io/api/core/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
)

// wanted are all Services of a Cluster.
func wanted(c *api.Cluster) []*corev1.Service {
	list := objects.RoleServices(c)
	for _, instance := range objects.Instances(c) {
		list = append(list, objects.InstanceService(c, instance))
	}
	return list
}
