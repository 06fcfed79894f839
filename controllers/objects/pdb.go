package objects

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "cnmsql.co/operator/api/v1alpha1"
)

// PDB lets one instance at a time be evicted, whatever its role: a stopping primary first gives the role away. It is
// the only budget over these Pods, since of two each would wait for the other. Its number is one that needs nobody to
// know how many Pods there should be. Nil when there is to be none: it is switched off, or there is but one
// instance, which a budget could only keep from ever being evicted.
func PDB(c *api.Cluster) *policyv1.PodDisruptionBudget {
	members := len(c.Status.InstanceNames)
	if c.Spec.EnablePDB == nil || !*c.Spec.EnablePDB || members < 2 {
		return nil
	}
	least := intstr.FromInt(members - 1)
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: meta(c, c.PDBName()),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: &least,
			Selector:     &metav1.LabelSelector{MatchLabels: c.Selector()},
		},
	}
}
