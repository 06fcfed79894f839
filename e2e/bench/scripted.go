package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// script is the other side: what a person would run who has a connection to every server at hand.
type script struct {
	b        *bench
	password string
	names    []string
	admin    map[string]*sql.DB

	mu      sync.Mutex
	current string
}

// scripted makes the Pods and sets replication up, unless an earlier run has.
func (b *bench) scripted(ctx context.Context) (*side, error) {
	if err := b.createScript(ctx); err != nil {
		return nil, err
	}
	secret := &corev1.Secret{}
	if err := b.e.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: scriptName}, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", scriptName, err)
	}
	s := &script{b: b, password: string(secret.Data["password"]), admin: map[string]*sql.DB{}}
	for n := 1; n <= instances; n++ {
		s.names = append(s.names, scriptInstance(n))
	}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if err := s.replicate(ctx); err != nil {
		return nil, err
	}
	return &side{
		name: "scripted", service: scriptService, sticky: true, instances: s.names, settle: s.settle,
		db:      b.e.PlainDatabase(namespace, "app", "app", s.password),
		primary: func(context.Context) (string, error) { return s.primary(), nil },
		ways: map[string]func(ctx context.Context, t *timeline, primary, other string) error{
			"switchover": s.switchOver,
			"kill":       s.failOver,
		},
		observe: func(ctx context.Context, t *timeline) error {
			o := newObserver(t)
			return errors.Join(b.followPods(ctx, o, client.MatchingLabels{scriptLabel: scriptName}, scriptRoleLabel), b.followEndpoints(ctx, o, scriptService))
		},
	}, nil
}

func (b *bench) createScript(ctx context.Context) error {
	objects, err := scriptObjects(rand.Text())
	if err != nil {
		return err
	}
	for _, o := range objects {
		err := b.e.Client.Create(ctx, o)
		if err != nil && (!b.keep || !apierrors.IsAlreadyExists(err)) {
			return fmt.Errorf("creating %s: %w", o.GetName(), err)
		}
	}
	return nil
}

// connect waits until every server answers.
func (s *script) connect(ctx context.Context) error {
	d := s.b.e.PlainDatabase(namespace, "", "script", s.password)
	for _, name := range s.names {
		db, err := d.Open(name)
		if err != nil {
			return err
		}
		s.admin[name] = db
		if err := s.awaitServer(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (s *script) awaitServer(ctx context.Context, name string) error {
	return framework.Await(ctx, name+" to answer", readyWithin, func(ctx context.Context) (bool, string, error) {
		return true, "", s.admin[name].PingContext(ctx)
	})
}

// replicate makes the first a primary, unless there is one.
func (s *script) replicate(ctx context.Context) error {
	pods := &corev1.PodList{}
	err := s.b.e.Client.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{scriptRoleLabel: rolePrimary})
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

// label gives a Pod its role, and with it the Service its endpoint.
func (s *script) label(ctx context.Context, name, role string) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, scriptRoleLabel, role)
	if err := s.b.e.Client.Patch(ctx, pod, client.RawPatch("application/merge-patch+json", patch)); err != nil {
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

func (s *script) others(than ...string) []string {
	return slices.DeleteFunc(slices.Clone(s.names), func(name string) bool { return slices.Contains(than, name) })
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

// query reads one value.
func query[T any](ctx context.Context, db *sql.DB, statement string, args ...any) (T, error) {
	var value T
	if err := db.QueryRowContext(ctx, statement, args...).Scan(&value); err != nil {
		return value, fmt.Errorf("%.60s: %w", statement, err)
	}
	return value, nil
}

// timed does a step and tells the timeline how long it took.
func timed(t *timeline, what string, do func() error) error {
	begin := time.Now()
	if err := do(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	t.add("script", "%s; took %.1f ms", what, float64(time.Since(begin).Microseconds())/1000)
	return nil
}
