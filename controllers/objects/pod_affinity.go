package objects

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// affinity keeps the Cluster's Pods apart, and adds what the user asks for.
func affinity(c *api.Cluster) *corev1.Affinity {
	a := &c.Spec.Affinity
	out := &corev1.Affinity{
		NodeAffinity:    a.NodeAffinity.DeepCopy(),
		PodAffinity:     a.AdditionalPodAffinity.DeepCopy(),
		PodAntiAffinity: a.AdditionalPodAntiAffinity.DeepCopy(),
	}
	if a.EnablePodAntiAffinity == nil || *a.EnablePodAntiAffinity {
		out.PodAntiAffinity = apart(c, out.PodAntiAffinity)
	}
	if out.NodeAffinity == nil && out.PodAffinity == nil && out.PodAntiAffinity == nil {
		return nil
	}
	return out
}

// apart adds our own term, first, to the user's.
func apart(c *api.Cluster, user *corev1.PodAntiAffinity) *corev1.PodAntiAffinity {
	if user == nil {
		user = &corev1.PodAntiAffinity{}
	}
	term := corev1.PodAffinityTerm{
		LabelSelector: &metav1.LabelSelector{MatchLabels: c.Selector()},
		TopologyKey:   c.Spec.Affinity.TopologyKey,
	}
	if c.Spec.Affinity.PodAntiAffinityType == api.AntiAffinityRequired {
		user.RequiredDuringSchedulingIgnoredDuringExecution = append(
			[]corev1.PodAffinityTerm{term}, user.RequiredDuringSchedulingIgnoredDuringExecution...)
		return user
	}
	user.PreferredDuringSchedulingIgnoredDuringExecution = append(
		[]corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: term}}, user.PreferredDuringSchedulingIgnoredDuringExecution...)
	return user
}
