package objects

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// ServiceAccount is the identity of one instance, with what the user's template adds to it.
func ServiceAccount(c *api.Cluster, instance string) *corev1.ServiceAccount {
	sa := &corev1.ServiceAccount{ObjectMeta: instanceMeta(c, instance, api.InstanceServiceAccountName(instance))}
	if t := c.Spec.ServiceAccountTemplate; t != nil {
		sa.Labels = under(t.Metadata.Labels, sa.Labels)
		sa.Annotations = under(t.Metadata.Annotations, sa.Annotations)
	}
	return sa
}

// under lays ours over the user's.
func under(user, ours map[string]string) map[string]string {
	if len(user) == 0 {
		return ours
	}
	out := maps.Clone(user)
	maps.Copy(out, ours)
	return out
}

// Role is what one instance may do: read its own Cluster and write its status, renew the primary Lease (but
// neither make nor delete it), and tell of events. Nothing about Secrets: those it needs are mounted.
func Role(c *api.Cluster, instance string) *rbacv1.Role {
	return &rbacv1.Role{
		ObjectMeta: instanceMeta(c, instance, api.InstanceServiceAccountName(instance)),
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{api.GroupVersion.Group}, Resources: []string{"clusters"}, ResourceNames: []string{c.Name}, Verbs: []string{"get", "list", "watch"}},
			{APIGroups: []string{api.GroupVersion.Group}, Resources: []string{"clusters/status"}, ResourceNames: []string{c.Name}, Verbs: []string{"get", "patch", "update"}},
			{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{c.LeaseName()}, Verbs: []string{"get", "list", "patch", "update", "watch"}},
			{APIGroups: []string{"", "events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
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
