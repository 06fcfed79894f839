package main

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/e2e/framework"
)

const (
	instances = 3
	// clusterName is ours, scriptName the other side's.
	clusterName = "bench"
)

// ours installs the operator and makes the Cluster.
func (b *bench) ours(ctx context.Context) (*side, error) {
	key := client.ObjectKey{Namespace: namespace, Name: clusterName}
	c := framework.SmallCluster(key, instances)
	there := b.keep && b.e.Client.Get(ctx, key, &api.Cluster{}) == nil
	if !there {
		if err := b.e.Install(ctx, b.archive); err != nil {
			return nil, fmt.Errorf("installing the operator: %w", err)
		}
		if err := b.e.Client.Create(ctx, c); err != nil {
			return nil, err
		}
	}
	if err := b.e.AwaitReady(ctx, key, 2*readyWithin, func(now string) { b.say("    %s", now) }); err != nil {
		return nil, err
	}
	db, err := b.e.Database(ctx, key)
	if err != nil {
		return nil, err
	}
	now, err := b.e.Cluster(ctx, key)
	if err != nil {
		return nil, err
	}
	return &side{
		name: "ours", db: db, service: now.ServiceName("rw"), instances: now.Status.InstanceNames,
		primary: func(ctx context.Context) (string, error) {
			c, err := b.e.Cluster(ctx, key)
			if err != nil {
				return "", err
			}
			return c.Status.CurrentPrimary, nil
		},
		settle:  func(ctx context.Context) error { return b.settleCluster(ctx, key) },
		ways:    b.ourWays(key),
		observe: func(ctx context.Context, t *timeline) error { return b.observeCluster(ctx, key, t) },
	}, nil
}

func (b *bench) ourWays(key client.ObjectKey) map[string]func(ctx context.Context, t *timeline, primary, other string) error {
	return map[string]func(ctx context.Context, t *timeline, primary, other string) error{
		"switchover": func(ctx context.Context, _ *timeline, _, other string) error {
			_, err := b.e.Plugin(ctx, key.Namespace, "promote", key.Name, other)
			return err
		},
		"kill": func(ctx context.Context, _ *timeline, primary, _ string) error {
			return b.e.KillServer(ctx, client.ObjectKey{Namespace: key.Namespace, Name: primary})
		},
		"delete": func(ctx context.Context, _ *timeline, primary, _ string) error {
			_, err := b.e.Kubectl(ctx, "-n", key.Namespace, "delete", "pod", primary, "--wait=false")
			return err
		},
	}
}

// settleCluster waits until all is well again.
func (b *bench) settleCluster(ctx context.Context, key client.ObjectKey) error {
	return b.e.AwaitHealed(ctx, key, readyWithin, func(now string) { b.say("    %s", now) })
}
