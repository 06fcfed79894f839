package framework

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Cluster reads one.
func (e *Environment) Cluster(ctx context.Context, key client.ObjectKey) (*api.Cluster, error) {
	c := &api.Cluster{}
	if err := e.Client.Get(ctx, key, c); err != nil {
		return nil, fmt.Errorf("reading Cluster %s: %w", key, err)
	}
	return c, nil
}

// Pods are a Cluster's, by name.
func (e *Environment) Pods(ctx context.Context, key client.ObjectKey) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := e.Client.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{api.LabelCluster: key.Name})
	if err != nil {
		return nil, fmt.Errorf("listing the Pods of Cluster %s: %w", key, err)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return list.Items, nil
}

// Ready tells whether the status says, of the present specification, that all is well.
func Ready(c *api.Cluster) bool {
	s := &c.Status
	return s.ObservedGeneration == c.Generation && s.Phase == api.PhaseReady && s.ReadyInstances == c.Spec.Instances &&
		meta.IsStatusConditionTrue(s.Conditions, api.ConditionReady)
}

// Describe is a Cluster's state in a line.
func Describe(c *api.Cluster) string {
	s := &c.Status
	text := fmt.Sprintf("%s, %d of %d ready", s.Phase, s.ReadyInstances, c.Spec.Instances)
	if s.PhaseReason != "" {
		text += ": " + s.PhaseReason
	}
	return text
}

// AwaitReady waits until the Cluster is Ready; progress, unless nil, is told of every change.
func (e *Environment) AwaitReady(ctx context.Context, key client.ObjectKey, limit time.Duration, progress func(string)) error {
	last := ""
	return Await(ctx, "Cluster "+key.String()+" to be Ready", limit, func(ctx context.Context) (bool, string, error) {
		c, err := e.Cluster(ctx, key)
		if err != nil {
			return false, "", err
		}
		now := Describe(c)
		if progress != nil && now != last && c.Status.Phase != "" {
			progress(now)
		}
		last = now
		return Ready(c), now, nil
	})
}

// AwaitPrimary waits until the primary is another than old and its Pod carries the label.
func (e *Environment) AwaitPrimary(ctx context.Context, key client.ObjectKey, old string, limit time.Duration) (string, error) {
	name := ""
	err := Await(ctx, "another primary than "+old, limit, func(ctx context.Context) (bool, string, error) {
		c, err := e.Cluster(ctx, key)
		if err != nil {
			return false, "", err
		}
		pods, err := e.Pods(ctx, key)
		if err != nil {
			return false, "", err
		}
		name = c.Status.CurrentPrimary
		labelled := slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.Name == name && p.Labels[api.LabelRole] == api.RolePrimary })
		return name != "" && name != old && labelled, Describe(c), nil
	})
	return name, err
}

// signalScript finds the server by its name, with nothing but a shell and cat, and sends it the signal $1.
const signalScript = `for d in /proc/[0-9]*; do
  if [ "$(cat "$d/comm" 2>/dev/null)" = mysqld ]; then kill "-$1" "${d#/proc/}" && found=1; fi
done; [ -n "$found" ]`

// KillServer ends mysqld in a Pod as a crash does.
func (e *Environment) KillServer(ctx context.Context, pod client.ObjectKey) error {
	return e.signalServer(ctx, pod, "KILL")
}

// HangServer stops mysqld in a Pod without ending it: it answers nobody, and its sockets stay open.
func (e *Environment) HangServer(ctx context.Context, pod client.ObjectKey) error {
	return e.signalServer(ctx, pod, "STOP")
}

func (e *Environment) signalServer(ctx context.Context, pod client.ObjectKey, signal string) error {
	_, err := e.Kubectl(ctx, "-n", pod.Namespace, "exec", pod.Name, "-c", "mysql", "--", "sh", "-c", signalScript, "sh", signal)
	return err
}

// KillContainer ends a Pod's instance manager, and with it everything in its container, as a crash does.
func (e *Environment) KillContainer(ctx context.Context, pod client.ObjectKey) error {
	p := &corev1.Pod{}
	if err := e.Client.Get(ctx, pod, p); err != nil {
		return fmt.Errorf("reading Pod %s: %w", pod, err)
	}
	for _, s := range p.Status.ContainerStatuses {
		if id, ok := strings.CutPrefix(s.ContainerID, "containerd://"); ok && s.Name == "mysql" {
			_, err := e.Lab.Exec(ctx, p.Spec.NodeName, "ctr", "-n", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", id)
			return err
		}
	}
	return fmt.Errorf("the Pod %s has no running container", pod)
}
