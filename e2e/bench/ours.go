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
	// clusterName is ours.
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
		primary: func(ctx context.Context) (string, error) { return b.ourPrimary(ctx, key) },
		settle:  func(ctx context.Context) error { return b.settleCluster(ctx, key) },
		ways:    b.ourWays(key, now.Status.InstanceNames),
		observe: func(ctx context.Context, t *timeline) error { return b.observeCluster(ctx, key, t) },
	}, nil
}

func (b *bench) ourPrimary(ctx context.Context, key client.ObjectKey) (string, error) {
	c, err := b.e.Cluster(ctx, key)
	if err != nil {
		return "", err
	}
	return c.Status.CurrentPrimary, nil
}

func (b *bench) ourWays(key client.ObjectKey, names []string) map[string]way {
	promote := func(ctx context.Context, other string, flags ...string) error {
		_, err := b.e.Plugin(ctx, key.Namespace, append([]string{"promote", key.Name, other}, flags...)...)
		return err
	}
	primary := func(ctx context.Context) (string, error) { return b.ourPrimary(ctx, key) }
	move := func(ctx context.Context, _, other string) error {
		if err := promote(ctx, other, "--wait"); err != nil {
			return err
		}
		return b.settleCluster(ctx, key)
	}
	return map[string]way{
		"switchover": {do: func(ctx context.Context, _ *timeline, _, other string) error { return promote(ctx, other) }},
		"kill":       {do: doing(b.killServer)},
		"delete":     {do: doing(b.deletePod)},
		"oom":        {do: doing(b.exhaustMemory)},
		"container":  {do: doing(b.killContainer)},
		"node":       b.nodeWay(names, primary, move),
	}
}

// settleCluster waits until all is well again.
func (b *bench) settleCluster(ctx context.Context, key client.ObjectKey) error {
	return b.e.AwaitHealed(ctx, key, readyWithin, func(now string) { b.say("    %s", now) })
}
