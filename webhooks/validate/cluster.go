package validate

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "cnmsql.co/operator/api/v1alpha1"
)

// checks are all that a Cluster must pass, in the order in which their messages are shown.
var checks = []func(*api.Cluster) field.ErrorList{
	clusterName,
	flavorAndMode,
	instanceCount,
	syncReplicas,
	semiSync,
	heartbeat,
	parameters,
	configFiles,
	storage,
	bootstrap,
	secrets,
	altNames,
	inheritedMetadata,
	environment,
	placement,
	resources,
	delays,
	failoverPolicy,
	managedServices,
}

// Cluster returns what is wrong with a Cluster, by itself; nothing when it can be carried out.
func Cluster(c *api.Cluster) field.ErrorList {
	c = c.DeepCopy()
	c.Default()
	var errs field.ErrorList
	for _, check := range checks {
		errs = append(errs, check(c)...)
	}
	return errs
}

// changes are what an update must pass besides.
var changes = []func(before, after *api.Cluster) field.ErrorList{
	immutable,
	storageChange,
	bootstrapChange,
}

// Update returns what is wrong with after, by itself and as a change of before.
func Update(before, after *api.Cluster) field.ErrorList {
	errs := Cluster(after)
	before, after = before.DeepCopy(), after.DeepCopy()
	before.Default()
	after.Default()
	for _, check := range changes {
		errs = append(errs, check(before, after)...)
	}
	return errs
}

var spec = field.NewPath("spec")
