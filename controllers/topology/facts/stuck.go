package facts

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
)

// unscheduled is why a Pod has no node.
func unscheduled(pod *corev1.Pod, c *corev1.PodCondition, p *patience) (message, reason string) {
	if !p.over(c.LastTransitionTime.Time, unscheduledShown) {
		return "", ""
	}
	text := strings.TrimSuffix(c.Message, ".")
	if c.Reason == corev1.PodReasonUnschedulable {
		return fmt.Sprintf("no node takes the Pod: %s (see spec.resources, spec.affinity and spec.storage)", text), api.ReasonPodUnschedulable
	}
	return fmt.Sprintf("the Pod gets no node (%s): %s; see kubectl describe pod %s", c.Reason, text, pod.Name), api.ReasonPodUnschedulable
}

// stuck is what is known of a Pod that has never run its server and whose containers give no reason.
func stuck(pod *corev1.Pod, p *patience) (message, reason string) {
	if !unstarted(pod) {
		return "", ""
	}
	describe := "see kubectl describe pod " + pod.Name
	if c := podCondition(pod, corev1.PodScheduled); c == nil {
		if !p.over(pod.CreationTimestamp.Time, podPatience) {
			return "", ""
		}
		if name := pod.Spec.SchedulerName; name != "" && name != corev1.DefaultSchedulerName {
			return fmt.Sprintf("the scheduler %s has not taken up the Pod: run it, or correct spec.schedulerName; %s", name, describe), api.ReasonPodUnschedulable
		}
		return "no scheduler has taken up the Pod; " + describe, api.ReasonPodUnschedulable
	} else if !p.over(c.LastTransitionTime.Time, podPatience) {
		return "", ""
	}
	sandbox := podCondition(pod, corev1.PodReadyToStartContainers)
	switch {
	case sandbox == nil:
		return fmt.Sprintf("the Pod has not started on the node %s; %s", pod.Spec.NodeName, describe), api.ReasonServerDoesNotStart
	case sandbox.Status != corev1.ConditionTrue:
		return fmt.Sprintf("the node %s has not made the Pod's volumes or its network ready; %s", pod.Spec.NodeName, describe), api.ReasonServerDoesNotStart
	case p.over(sandbox.LastTransitionTime.Time, pullPatience):
		return fmt.Sprintf("the node %s is still pulling an image of the Pod, or its first container does not end; %s", pod.Spec.NodeName, describe), api.ReasonServerDoesNotStart
	}
	return "", ""
}

// unstarted tells that the server's container never ran, and nothing is known to be wrong with it.
func unstarted(pod *corev1.Pod) bool {
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == objects.ContainerMySQL {
			return s.State.Running == nil && s.State.Terminated == nil && s.LastTerminationState.Terminated == nil && s.RestartCount == 0
		}
	}
	return true
}

// unmade is why a container cannot be made, with the field that asks for what is missing.
func unmade(pod *corev1.Pod, container, text string) (message, reason string) {
	if strings.Contains(text, "runAsNonRoot") || strings.Contains(text, "non-root") {
		return fmt.Sprintf("the container cannot be made: %s; correct spec.podSecurityContext or spec.securityContext", text), api.ReasonServerDoesNotStart
	}
	reason = api.ReasonServerDoesNotStart
	if strings.Contains(strings.ToLower(text), "secret") {
		reason = api.ReasonSecretMissing
	}
	if field := asksFor(pod, container, text); field != "" {
		return fmt.Sprintf("the container cannot be made: %s (%s); create it, or correct that field", text, field), reason
	}
	return fmt.Sprintf("the container cannot be made: %s; create what it names", text), reason
}

// asksFor is the field from which a container has a Secret or ConfigMap that a text names; empty when it is not
// of the Cluster's specification.
func asksFor(pod *corev1.Pod, container, text string) string {
	names := func(name string) bool {
		return name != "" && (strings.Contains(text, `"`+name+`"`) || strings.HasSuffix(text, "/"+name))
	}
	for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
		if c.Name != container {
			continue
		}
		for _, from := range c.EnvFrom {
			if from.SecretRef != nil && names(from.SecretRef.Name) || from.ConfigMapRef != nil && names(from.ConfigMapRef.Name) {
				return "spec.envFrom"
			}
		}
		for _, v := range c.Env {
			if from := v.ValueFrom; from != nil && (from.SecretKeyRef != nil && names(from.SecretKeyRef.Name) || from.ConfigMapKeyRef != nil && names(from.ConfigMapKeyRef.Name)) {
				return "spec.env, " + v.Name
			}
		}
	}
	return ""
}
