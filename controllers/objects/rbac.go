package objects

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// ServiceAccount is the identity of one instance, with what the user's template adds to it: the template wins over
// the inherited metadata, and ours over both.
func ServiceAccount(c *api.Cluster, instance string) *corev1.ServiceAccount {
	m := instanceMeta(c, instance, api.InstanceServiceAccountName(instance))
	if t := c.Spec.ServiceAccountTemplate; t != nil {
		general := inherited(c)
		m.Labels = labels(c, instance, over(general.Labels, t.Metadata.Labels))
		m.Annotations = annotations(over(general.Annotations, t.Metadata.Annotations))
	}
	return &corev1.ServiceAccount{ObjectMeta: m}
}

// over lays the particular over the general.
func over(general, particular map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, general)
	maps.Copy(out, particular)
	return out
}

// Role is what one instance may do: follow its own Cluster and write its status, follow and renew the primary Lease
// (but neither make nor delete it), see whether its own Pod is to be stopped. No other verb has a call in the instance manager, whose watches select one name
// and need no list. Nothing about Secrets: those it needs are mounted.
func Role(c *api.Cluster, instance string) *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: instanceMeta(c, instance, api.InstanceServiceAccountName(instance)),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{api.GroupVersion.Group}, Resources: []string{"clusters"}, ResourceNames: []string{c.Name}, Verbs: []string{"get", "watch"}},
			{APIGroups: []string{api.GroupVersion.Group}, Resources: []string{"clusters/status"}, ResourceNames: []string{c.Name}, Verbs: []string{"update"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{c.LeaseName()}, Verbs: []string{"get", "update", "watch"}},
			{APIGroups: []string{corev1.GroupName}, Resources: []string{"pods"}, ResourceNames: []string{instance}, Verbs: []string{"get"}},
		},
	}
}

// RoleBinding gives the Role to the ServiceAccount.
func RoleBinding(c *api.Cluster, instance string) *rbacv1.RoleBinding {
	name := api.InstanceServiceAccountName(instance)
	return &rbacv1.RoleBinding{
		ObjectMeta: instanceMeta(c, instance, name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: c.Namespace}},
	}
}
