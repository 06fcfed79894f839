package objects

import (
	corev1 "k8s.io/api/core/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

func podSecurityContext(c *api.Cluster) *corev1.PodSecurityContext {
	if c.Spec.PodSecurityContext != nil {
		return c.Spec.PodSecurityContext.DeepCopy()
	}
	return &corev1.PodSecurityContext{
		RunAsNonRoot:        new(true),
		RunAsUser:           new(serverID),
		RunAsGroup:          new(serverID),
		FSGroup:             new(serverID),
		FSGroupChangePolicy: new(corev1.FSGroupChangeOnRootMismatch),
		SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

func securityContext(c *api.Cluster) *corev1.SecurityContext {
	if c.Spec.SecurityContext != nil {
		return c.Spec.SecurityContext.DeepCopy()
	}
	return &corev1.SecurityContext{
		RunAsNonRoot:             new(true),
		Privileged:               new(false),
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}
