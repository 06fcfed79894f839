package framework

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

// ServerImage is the lab's image of the server.
const ServerImage = "mysql:9.7"

// SmallServer are the parameters of a server that a small machine bears several of.
func SmallServer() map[string]string {
	return map[string]string{
		"innodb_buffer_pool_size": "64M", "innodb_redo_log_capacity": "32M", "max_connections": "100", "table_open_cache": "200",
		"performance_schema_digests_size": "100", "performance_schema_max_table_instances": "400",
		"performance_schema_max_thread_instances": "300",
	}
}

// SmallCluster is a Cluster of small servers. With more than one, commits wait for one acknowledgement.
func SmallCluster(key client.ObjectKey, instances int32) *api.Cluster {
	c := &api.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: api.ClusterSpec{
			Instances: instances,
			ImageName: ServerImage,
			MySQL:     api.MySQLConfiguration{Parameters: SmallServer()},
			Storage:   api.StorageConfiguration{Size: resource.MustParse("1Gi")},
		},
	}
	if instances > 1 {
		c.Spec.MinSyncReplicas = 1
		c.Spec.MySQL.SemiSync = &api.SemiSyncConfiguration{Enabled: true}
	}
	return c
}
