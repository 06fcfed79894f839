package manager

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/provision"
)

// lookAgain is how often a start that waits for the Cluster looks at what was last seen of it.
const lookAgain = 100 * time.Millisecond

// await waits until the Cluster as last seen fulfils want.
func await(ctx context.Context, cluster func() *api.Cluster, want func(*api.Cluster) bool) (*api.Cluster, error) {
	for {
		if c := cluster(); want(c) {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lookAgain):
		}
	}
}

// data answers what provisioning asks of the Cluster and of the mounted Secrets.
type data struct {
	Config
	cluster func() *api.Cluster
	secrets *secrets
}

// origin waits until the Cluster says where the data come from: empty only as the first primary of a Cluster
// that never had one, else from the current primary.
func (d *data) origin(ctx context.Context) (provision.Origin, error) {
	var origin provision.Origin
	_, err := await(ctx, d.cluster, func(c *api.Cluster) bool {
		if c == nil {
			return false
		}
		t := c.Status.PrimaryTransition
		switch {
		case !c.Established() && t != nil && t.Kind == api.TransitionBootstrap && t.To == d.Instance:
			origin = provision.InitDB
		case d.foreignPrimary(c):
			origin = provision.Join
		default:
			return false
		}
		return true
	})
	return origin, err
}

// maxStart is how long a server may take to accept connections.
func (d *data) maxStart() time.Duration {
	seconds := api.DefaultMaxStartDelay
	if c := d.cluster(); c != nil && c.Spec.MaxStartDelay > 0 {
		seconds = c.Spec.MaxStartDelay
	}
	return time.Duration(seconds) * time.Second
}

func (d *data) foreignPrimary(c *api.Cluster) bool {
	return c != nil && c.Status.CurrentPrimary != "" && c.Status.CurrentPrimary != d.Instance
}

// donor waits until there is a primary to clone.
func (d *data) donor(ctx context.Context) (mysql.Source, error) {
	c, err := await(ctx, d.cluster, d.foreignPrimary)
	if err != nil {
		return mysql.Source{}, fmt.Errorf("waiting for a primary to clone: %w", err)
	}
	return d.source(c.Status.CurrentPrimary)
}

// source is how to replicate from, or clone, an instance.
func (d *data) source(instance string) (mysql.Source, error) {
	user, password, err := d.account("replication")
	if err != nil {
		return mysql.Source{}, err
	}
	c := api.Cluster{}
	c.Namespace = d.Namespace
	return mysql.Source{
		Host: c.InstanceHost(instance), Port: api.PortMySQL, User: user, Password: password,
		CA:   filepath.Join(d.Paths.ServerTLS, "ca.crt"),
		Cert: filepath.Join(d.Paths.Replication, "tls.crt"),
		Key:  filepath.Join(d.Paths.Replication, "tls.key"),
	}, nil
}

func (d *data) account(name string) (user, password string, err error) {
	if user, err = d.secrets.value(name, api.SecretKeyUsername); err != nil {
		return "", "", err
	}
	password, err = d.secrets.value(name, api.SecretKeyPassword)
	return user, password, err
}

func (d *data) accounts(ctx context.Context) (provision.Accounts, error) {
	c, err := await(ctx, d.cluster, func(c *api.Cluster) bool { return c != nil })
	if err != nil {
		return provision.Accounts{}, err
	}
	a := provision.Accounts{RootEverywhere: c.Spec.EnableSuperuserAccess, ReplicationSubject: "/CN=" + api.SubjectReplication}
	if a.Root, err = d.secrets.value("root", api.SecretKeyPassword); err != nil {
		return a, err
	}
	if a.Control.User, a.Control.Password, err = d.account("control"); err != nil {
		return a, err
	}
	a.Replication.User, a.Replication.Password, err = d.account("replication")
	return a, err
}

func (d *data) database(ctx context.Context) (provision.Database, error) {
	c, err := await(ctx, d.cluster, func(c *api.Cluster) bool { return c != nil })
	if err != nil {
		return provision.Database{}, err
	}
	i := c.Spec.Bootstrap.InitDB
	out := provision.Database{Name: i.Database, CharacterSet: i.CharacterSet, Collation: i.Collation, PostInitSQL: i.PostInitSQL, Heartbeat: c.HeartbeatEnabled()}
	user, password, err := d.account("app")
	if err != nil {
		return out, err
	}
	if i.Owner != "" {
		user = i.Owner
	}
	if user == "" {
		user = i.Database
	}
	out.Owner = provision.Account{User: user, Password: password}
	return out, nil
}
