package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// script is one of the other sides: what a person would run who has a connection to every server at hand.
type script struct {
	*plain

	mu      sync.Mutex
	current string
}

// scriptService is the Service that the script leads to the primary.
const scriptService = "script-rw"

var scriptKind = kind{name: "script", options: func(int) []string { return nil }}

// scripted makes the Pods and sets replication up, unless an earlier run has.
func (b *bench) scripted(ctx context.Context) (*side, error) {
	rw := service(scriptService, "", map[string]string{plainLabel: scriptKind.name, roleLabel: rolePrimary})
	if err := b.e.Client.Create(ctx, rw); err != nil && (!b.keep || !apierrors.IsAlreadyExists(err)) {
		return nil, fmt.Errorf("creating %s: %w", scriptService, err)
	}
	p, err := b.plainServers(ctx, scriptKind)
	if err != nil {
		return nil, err
	}
	s := &script{plain: p}
	if err := s.replicate(ctx); err != nil {
		return nil, err
	}
	return &side{
		name: "scripted", service: scriptService, sticky: true, instances: s.names, settle: s.settle, db: s.database(),
		primary: func(context.Context) (string, error) { return s.primary(), nil },
		ways: map[string]way{
			"switchover": {do: s.switchOver},
			"kill":       {do: s.failOver(b.killServer, s.awaitServer)},
			"delete":     {do: s.failOver(b.deletePod, s.restore)},
			"oom":        {do: s.failOver(b.exhaustMemory, s.awaitServer)},
			"container":  {do: s.failOver(b.killContainer, s.awaitServer)},
		},
		observe: func(ctx context.Context, t *timeline) error {
			o := newObserver(t)
			return errors.Join(b.followPods(ctx, o, client.MatchingLabels{plainLabel: scriptKind.name}, roleLabel), b.followEndpoints(ctx, o, scriptService))
		},
	}, nil
}

// replicate makes the first a primary, unless there is one.
func (s *script) replicate(ctx context.Context) error {
	pods := &corev1.PodList{}
	err := s.b.e.Client.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{plainLabel: scriptKind.name, roleLabel: rolePrimary})
	if err != nil {
		return fmt.Errorf("looking for the script's primary: %w", err)
	}
	if len(pods.Items) > 0 {
		s.current = pods.Items[0].Name
		return s.settle(ctx)
	}
	first := s.names[0]
	for _, name := range s.names[1:] {
		if err := s.follow(ctx, name, first); err != nil {
			return err
		}
	}
	if err := s.open(ctx, first); err != nil {
		return err
	}
	for _, name := range s.names {
		role := roleReplica
		if name == first {
			role = rolePrimary
		}
		if err := s.label(ctx, name, role); err != nil {
			return err
		}
	}
	return s.settle(ctx)
}

// label gives a Pod its role, and with it the Service its endpoint. A Pod that is gone needs none.
func (s *script) label(ctx context.Context, name, role string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, roleLabel, role)
	err := s.b.e.Client.Patch(ctx, pod, client.RawPatch("application/merge-patch+json", patch))
	if role != rolePrimary {
		err = client.IgnoreNotFound(err)
	}
	if err != nil {
		return fmt.Errorf("labelling %s: %w", name, err)
	}
	if role == rolePrimary {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.current = name
	}
	return nil
}

func (s *script) primary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// settle waits until both replicas follow the primary and acknowledge its commits.
func (s *script) settle(ctx context.Context) error {
	const threads = "SELECT COUNT(*) FROM performance_schema.replication_connection_status c JOIN performance_schema.replication_applier_status a " +
		"USING (channel_name) WHERE c.service_state = 'ON' AND a.service_state = 'ON'"
	const ackers = "SELECT variable_value FROM performance_schema.global_status WHERE variable_name = 'Rpl_semi_sync_source_clients'"
	return framework.Await(ctx, "the script's replicas to follow", readyWithin, func(ctx context.Context) (bool, string, error) {
		primary, following := s.primary(), 0
		for _, name := range s.others(primary) {
			n, err := query[int](ctx, s.admin[name], threads)
			if err != nil {
				return false, "", fmt.Errorf("%s: %w", name, err)
			}
			following += n
		}
		acking, err := query[int](ctx, s.admin[primary], ackers)
		if err != nil {
			return false, "", fmt.Errorf("%s: %w", primary, err)
		}
		want := len(s.names) - 1
		return following == want && acking == want, fmt.Sprintf("%d follow, %d acknowledge", following, acking), nil
	})
}
