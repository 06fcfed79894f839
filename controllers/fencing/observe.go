package fencing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

// asking are the Cluster's own Pods that carry a request.
func (r *Reconciler) asking(ctx context.Context, c *api.Cluster) ([]corev1.Pod, error) {
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, client.InNamespace(c.Namespace), client.MatchingLabels(c.Selector())); err != nil {
		return nil, fmt.Errorf("listing the Pods: %w", err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return !asks(&p) || !metav1.IsControlledBy(&p, c) }), nil
}

// asks tells that a Pod is annotated as to be fenced.
func asks(o client.Object) bool {
	text := strings.TrimSpace(o.GetAnnotations()[api.AnnotationFencing])
	return text != "" && !strings.EqualFold(text, "false")
}

func names(pods []corev1.Pod) []string {
	var all []string
	for i := range pods {
		all = append(all, pods[i].Name)
	}
	slices.Sort(all)
	return all
}
