package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// plain are three servers in Pods that no operator looks after, with a connection to each.
type plain struct {
	b        *bench
	kind     kind
	password string
	names    []string
	admin    map[string]*sql.DB
}

// plainServers makes them, unless an earlier run has, and waits until each answers.
func (b *bench) plainServers(ctx context.Context, k kind) (*plain, error) {
	objects, err := plainObjects(k, rand.Text())
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		err := b.e.Client.Create(ctx, o)
		if err != nil && (!b.keep || !apierrors.IsAlreadyExists(err)) {
			return nil, fmt.Errorf("creating %s: %w", o.GetName(), err)
		}
	}
	secret := &corev1.Secret{}
	if err := b.e.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: k.name}, secret); err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", k.name, err)
	}
	p := &plain{b: b, kind: k, password: string(secret.Data["password"]), admin: map[string]*sql.DB{}}
	for n := 1; n <= instances; n++ {
		p.names = append(p.names, k.instance(n))
	}
	return p, p.connect(ctx)
}

func (p *plain) connect(ctx context.Context) error {
	d := p.b.e.PlainDatabase(namespace, "", adminUser, p.password)
	for _, name := range p.names {
		db, err := d.Open(name)
		if err != nil {
			return err
		}
		p.admin[name] = db
		if err := p.awaitServer(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// database is the application's.
func (p *plain) database() *framework.Database {
	return p.b.e.PlainDatabase(namespace, "app", "app", p.password)
}

func (p *plain) awaitServer(ctx context.Context, name string) error {
	return framework.Await(ctx, name+" to answer", readyWithin, func(ctx context.Context) (bool, string, error) {
		return true, "", p.admin[name].PingContext(ctx)
	})
}

func (p *plain) others(than ...string) []string {
	return slices.DeleteFunc(slices.Clone(p.names), func(name string) bool { return slices.Contains(than, name) })
}

// exec carries out statements on a server.
func (p *plain) exec(ctx context.Context, name string, statements ...string) error {
	for _, statement := range statements {
		if _, err := p.admin[name].ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("%s on %s: %w", statement[:min(len(statement), 60)], name, err)
		}
	}
	return nil
}

// patiently carries out statements as root in a server's Pod. They may take longer than a connection of this program waits
// for an answer.
func (p *plain) patiently(ctx context.Context, name, statements string) error {
	_, err := p.b.e.Kubectl(ctx, "-n", namespace, "exec", name, "-c", "mysql", "--", "mysql", "--socket", plainData+"/mysql.sock", "-u", "root", "-e", statements)
	return err
}

// restore makes a Pod anew that was deleted, with an empty server.
func (p *plain) restore(ctx context.Context, name string) error {
	err := framework.Await(ctx, "Pod "+name+" to be gone and made anew", readyWithin, func(ctx context.Context) (bool, string, error) {
		err := p.b.e.Client.Create(ctx, plainPod(p.kind, slices.Index(p.names, name)+1))
		if apierrors.IsAlreadyExists(err) {
			return false, "it is still there", nil
		}
		return err == nil, "", err
	})
	if err != nil {
		return err
	}
	return p.awaitServer(ctx, name)
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
