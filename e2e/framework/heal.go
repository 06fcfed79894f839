package framework

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

// AwaitHealed is AwaitReady after a primary was killed or cut off. Such a primary may hold a write that no replica had
// received and no client was told of: it has then diverged, and stays out until a person has it made anew, which is
// what this does. limit is for each part.
func (e *Environment) AwaitHealed(ctx context.Context, key client.ObjectKey, limit time.Duration, progress func(string)) error {
	if progress == nil {
		progress = func(string) {}
	}
	var diverged []api.Divergence
	err := Await(ctx, "Cluster "+key.String()+" to be Ready", limit, func(ctx context.Context) (bool, string, error) {
		c, err := e.Cluster(ctx, key)
		if err != nil {
			return false, "", err
		}
		diverged = c.Status.Divergence
		return Ready(c) || len(diverged) > 0, Describe(c), nil
	})
	if err != nil {
		return err
	}
	for _, d := range diverged {
		progress(fmt.Sprintf("%s holds what nobody else has and no client was told of (%s): making it anew, as docs/primary.md says", d.Instance, d.GTIDSet))
		if err := e.makeAnew(ctx, client.ObjectKey{Namespace: key.Namespace, Name: d.Instance}, limit); err != nil {
			return err
		}
	}
	return e.AwaitReady(ctx, key, limit, progress)
}

// makeAnew deletes an instance's volume with its Pod, and waits until the operator has made another.
func (e *Environment) makeAnew(ctx context.Context, instance client.ObjectKey, limit time.Duration) error {
	uid := func() (string, error) {
		return e.Kubectl(ctx, "-n", instance.Namespace, "get", "pvc", instance.Name, "--ignore-not-found", "-o", "jsonpath={.metadata.uid}")
	}
	before, err := uid()
	if err != nil {
		return err
	}
	if _, err := e.Kubectl(ctx, "-n", instance.Namespace, "delete", "pvc,pod", instance.Name, "--wait=false", "--ignore-not-found"); err != nil {
		return err
	}
	return Await(ctx, "a new volume of "+instance.Name, limit, func(context.Context) (bool, string, error) {
		now, err := uid()
		return strings.TrimSpace(now) != "" && now != before, "volume claim " + now, err
	})
}
