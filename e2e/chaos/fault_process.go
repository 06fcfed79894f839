package main

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// kill ends one process as a crash does. Whoever looks after it starts it again.
type kill struct {
	lab       framework.Lab
	container framework.Container
	process   framework.Process
}

func (k kill) begin(ctx context.Context) (string, error) {
	return k.lab.Signal(ctx, k.container, k.process, "KILL")
}
func (kill) heal(context.Context) (string, error) { return "", nil }

// killContainer has containerd kill all processes of a container.
type killContainer struct {
	lab       framework.Lab
	container framework.Container
}

func (k killContainer) begin(ctx context.Context) (string, error) {
	return k.lab.Task(ctx, k.container, "kill", "--all", "--signal", "SIGKILL")
}
func (killContainer) heal(context.Context) (string, error) { return "", nil }

// hang stops one process: it does nothing, and its sockets stay open.
type hang struct {
	lab       framework.Lab
	container framework.Container
	process   framework.Process
}

func (h hang) begin(ctx context.Context) (string, error) {
	return h.lab.Signal(ctx, h.container, h.process, "STOP")
}

// heal lets everything in the container go on. There may be none of it any more, as hanging processes get killed.
func (h hang) heal(ctx context.Context) (string, error) {
	return goneIsFine(h.lab.SignalAll(ctx, h.container, "CONT"))
}

// freeze stops all processes of a container at once.
type freeze struct {
	lab       framework.Lab
	container framework.Container
}

func (f freeze) begin(ctx context.Context) (string, error) {
	return f.lab.Task(ctx, f.container, "pause")
}

func (f freeze) heal(ctx context.Context) (string, error) {
	return goneIsFine(f.lab.Task(ctx, f.container, "resume"))
}

// goneIsFine forgives a repair that found nothing to repair: what hangs is often killed, and what follows it is well.
func goneIsFine(_ string, err error) (string, error) {
	if err == nil {
		return "", nil
	}
	for _, fine := range []string{"no such container runs", "no such process", "not running", "not paused", "cannot resume"} {
		if strings.Contains(err.Error(), fine) {
			return "gone when it should have gone on", nil
		}
	}
	return "", err
}

// deletePod deletes a Pod, with its own grace period or the given one.
type deletePod struct {
	e         *framework.Environment
	container framework.Container
	grace     *int64
}

func (d deletePod) begin(ctx context.Context) (string, error) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.container.Namespace, Name: d.container.Pod}}
	return "", d.e.Client.Delete(ctx, pod, &client.DeleteOptions{GracePeriodSeconds: d.grace})
}
func (deletePod) heal(context.Context) (string, error) { return "", nil }
