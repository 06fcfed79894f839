package framework

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"io"
	"log"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Database is what an application needs to know: where, who, and whom to trust.
type Database struct {
	// RejectReadOnly gives a connection up that turns out to lead to a read-only server, as some drivers can. With our
	// Clusters it is not needed: a former primary refuses clients.
	RejectReadOnly bool
	// Resolve finds the address of a host without asking the cluster's DNS, as a client does that has asked before.
	// Nil, or an empty answer: the DNS is asked.
	Resolve func(host string) (address string)
	// Patience is how long an answer is waited for; 0 is 5 seconds.
	Patience time.Duration

	lab      Lab
	cluster  client.ObjectKey
	user     string
	password string
	name     string
	roots    *x509.CertPool
}

// Database reads the application's account and the Cluster's authority from its Secrets.
func (e *Environment) Database(ctx context.Context, cluster client.ObjectKey) (*Database, error) {
	account, err := e.secret(ctx, cluster.Namespace, cluster.Name+"-app")
	if err != nil {
		return nil, err
	}
	ca, err := e.secret(ctx, cluster.Namespace, cluster.Name+"-ca")
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca["tls.crt"]) {
		return nil, fmt.Errorf("the Secret %s-ca holds no certificate", cluster.Name)
	}
	return &Database{
		lab: e.Lab, cluster: cluster, name: "app", roots: roots,
		user: string(account["username"]), password: string(account["password"]),
	}, nil
}

func (e *Environment) secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	s := &corev1.Secret{}
	if err := e.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, s); err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	return s.Data, nil
}

// PlainDatabase is one in a namespace that no Cluster stands behind. Its servers made their certificates
// themselves, so these are not verified.
func (e *Environment) PlainDatabase(namespace, name, user, password string) *Database {
	return &Database{lab: e.Lab, cluster: client.ObjectKey{Namespace: namespace}, name: name, user: user, password: password}
}

// Open returns a pool of connections to a host: a Service (demo-rw) or an instance (demo-2). It verifies the
// server's certificate. Times are short, as in an application that wants to notice.
func (d *Database) Open(host string) (*sql.DB, error) {
	full := host + "." + d.cluster.Namespace + ".svc"
	c := mysql.NewConfig()
	c.User, c.Passwd, c.DBName = d.user, d.password, d.name
	c.Net, c.Addr = "tcp", full+":3306"
	c.RejectReadOnly = d.RejectReadOnly
	patience := cmp.Or(d.Patience, 5*time.Second)
	c.Timeout, c.ReadTimeout, c.WriteTimeout = time.Second, patience, patience
	c.TLS = &tls.Config{RootCAs: d.roots, ServerName: full, MinVersion: tls.VersionTLS12}
	if d.roots == nil {
		c.TLS.InsecureSkipVerify = true // #nosec G402 -- see PlainDatabase
	}
	c.Logger = log.New(io.Discard, "", 0)
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if d.Resolve != nil {
			if ip := d.Resolve(host); ip != "" {
				address = net.JoinHostPort(ip, "3306")
			}
		}
		return d.lab.dial().DialContext(ctx, network, address)
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, fmt.Errorf("configuring the connection to %s: %w", full, err)
	}
	return sql.OpenDB(connector), nil
}

// Service opens the Service of a role: rw, ro or r.
func (d *Database) Service(role string) (*sql.DB, error) { return d.Open(d.cluster.Name + "-" + role) }

// SQL runs statements as root in an instance's Pod.
func (e *Environment) SQL(ctx context.Context, pod client.ObjectKey, cluster, statements string) error {
	account, err := e.secret(ctx, pod.Namespace, cluster+"-root")
	if err != nil {
		return err
	}
	_, err = e.Kubectl(ctx, "-n", pod.Namespace, "exec", pod.Name, "-c", "mysql", "--",
		"env", "MYSQL_PWD="+string(account["password"]), "mysql", "--socket", "/run/cnmsql/mysql.sock", "-u", "root", "-e", statements)
	return err
}

// Dial opens a connection to an address inside the lab.
func (e *Environment) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return e.Lab.dial().DialContext(ctx, network, address)
}
