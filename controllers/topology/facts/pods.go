package facts

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
	"cnmsql.co/operator/controllers/topology/core"
)

// podFacts is what matters of a Pod; template is the hash of the Pod that would be made now.
func podFacts(pod *corev1.Pod, template string, w *patience) *core.Pod {
	p := &core.Pod{
		UID:         string(pod.UID),
		Terminating: pod.DeletionTimestamp != nil,
		Role:        pod.Labels[api.LabelRole],
		Routable:    pod.Labels[api.LabelRoutable] == "true",
		Outdated:    pod.Annotations[api.AnnotationTemplateHash] != template,
	}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		p.Ended = string(pod.Status.Phase)
		if pod.Status.Reason != "" {
			p.Ended += " (" + pod.Status.Reason + ")"
		}
	}
	if c := podCondition(pod, corev1.PodReady); c != nil {
		p.Ready = c.Status == corev1.ConditionTrue
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.Name == objects.ContainerMySQL {
			p.Running = s.State.Running != nil
		}
	}
	if p.Ended == "" && !p.Terminating {
		p.Trouble, p.TroubleReason = podTrouble(pod, w)
	}
	return p
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// podTrouble is why a Pod does not run, with what to do about it. The text stays the same while nothing changes.
func podTrouble(pod *corev1.Pod, w *patience) (message, reason string) {
	if c := podCondition(pod, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return unscheduled(pod, c, w)
	}
	for _, s := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
		if s.State.Waiting == nil {
			continue
		}
		if message, reason = waitTrouble(pod, &s); message != "" {
			return message, reason
		}
	}
	return stuck(pod, w)
}

// waitTrouble is why a container waits.
func waitTrouble(pod *corev1.Pod, s *corev1.ContainerStatus) (message, reason string) {
	w := s.State.Waiting
	switch w.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable":
		// The kubelet's own message alternates; it stays with the Pod.
		if s.Name == objects.ContainerBootstrap {
			return fmt.Sprintf("the operator's image %s cannot be pulled: make it available to the node, or give the operator another one (OPERATOR_IMAGE)", s.Image), api.ReasonImagePull
		}
		return fmt.Sprintf("the image %s cannot be pulled: correct spec.imageName or spec.imagePullSecrets", s.Image), api.ReasonImagePull
	case "CreateContainerConfigError":
		return unmade(pod, s.Name, w.Message)
	case "CreateContainerError", "RunContainerError":
		return fmt.Sprintf("the container cannot be made: %s", w.Message), api.ReasonServerDoesNotStart
	case "CrashLoopBackOff":
		return "the container ends again and again: " + lastEnd(s), api.ReasonServerDoesNotStart
	}
	return "", ""
}

// lastEnd is how a container ended, by its last words if it had any.
func lastEnd(s *corev1.ContainerStatus) string {
	t := s.LastTerminationState.Terminated
	if t == nil {
		return "it left no message"
	}
	lines := strings.Split(strings.TrimSpace(t.Message), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return fmt.Sprintf("%s, exit code %d", t.Reason, t.ExitCode)
}
