package validate

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "cnmsql.co/operator/api/v1alpha1"
)

// failoverPolicy: limits make sense, and preferences are instances of this Cluster, each once.
func failoverPolicy(c *api.Cluster) field.ErrorList {
	f := c.Spec.FailoverPolicy
	path := spec.Child("failoverPolicy")
	var errs field.ErrorList
	if n := f.MaxTransactionsBehind; n != nil && *n < 0 {
		errs = append(errs, field.Invalid(path.Child("maxTransactionsBehind"), *n, "use 0 or more, or leave it out for no limit"))
	}
	for name, d := range map[string]*metav1.Duration{"minTimeBetweenFailovers": f.MinTimeBetweenFailovers, "primaryStabilityWindow": f.PrimaryStabilityWindow} {
		if d != nil && d.Duration < 0 {
			errs = append(errs, field.Invalid(path.Child(name), d.Duration.String(), "use a time like 10m, or leave it out"))
		}
	}
	for n, name := range f.PreferredPrimary {
		at := path.Child("preferredPrimary").Index(n)
		if _, ok := c.InstanceOrdinal(name); !ok {
			errs = append(errs, field.Invalid(at, name, fmt.Sprintf("is no instance of this Cluster: use a name like %s", c.InstanceName(1))))
		} else if slices.Contains(f.PreferredPrimary[:n], name) {
			errs = append(errs, field.Duplicate(at, name))
		}
	}
	return errs
}
