package observer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Times of one connection.
const (
	dialTimeout = time.Second
	// connectTimeout is from the beginning of an attempt to the first report.
	connectTimeout = 3 * time.Second
)

// Credentials are by which the operator proves itself and knows the instances: the content of the Secret
// <cluster>-client-tls, in PEM.
type Credentials struct {
	CA, Certificate, Key []byte
}

func (c Credentials) equal(d Credentials) bool {
	return slices.Equal(c.CA, d.CA) && slices.Equal(c.Certificate, d.Certificate) && slices.Equal(c.Key, d.Key)
}

// group is the instances of one Cluster. Its fields but client are guarded by the observer's lock.
type group struct {
	observer    *Observer
	key         types.NamespacedName
	clusterUID  string
	credentials Credentials
	watchers    map[string]*watcher
	client      atomic.Pointer[http.Client]
}

// use takes credentials. Other ones than before replace the transport and make the streams connect anew.
func (g *group) use(c Credentials) error {
	if g.client.Load() != nil && g.credentials.equal(c) {
		return nil
	}
	config, err := c.config()
	if err != nil {
		return fmt.Errorf("client certificate for the instances of %s: %w", g.key, err)
	}
	g.credentials = c
	g.shut(g.client.Swap(&http.Client{
		Transport: g.transport(config),
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}))
	for _, w := range g.watchers {
		w.reconnect()
	}
	return nil
}

func (c Credentials) config() (*tls.Config, error) {
	pair, err := tls.X509KeyPair(c.Certificate, c.Key)
	if err != nil {
		return nil, fmt.Errorf("tls.crt and tls.key: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(c.CA) {
		return nil, errors.New("ca.crt holds no certificate")
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}, nil
}

// transport reaches instances by their names, which TLS verifies, at the addresses of their Pods.
func (g *group) transport(config *tls.Config) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Transport{
		TLSClientConfig: config,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			name, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, fmt.Errorf("address %s: %w", address, err)
			}
			w := g.observer.watcher(g.key, name)
			if w == nil {
				return nil, fmt.Errorf("%s is not followed any more", name)
			}
			return dialer.DialContext(ctx, network, net.JoinHostPort(w.target.PodIP, port))
		},
		TLSHandshakeTimeout:    connectTimeout,
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// follow starts and ends watchers so that there is one for each target with an address.
func (g *group) follow(targets []Target) {
	next := map[string]*watcher{}
	for _, t := range targets {
		if t.PodIP == "" {
			continue
		}
		if w := g.watchers[t.Instance]; w != nil && w.target == t {
			next[t.Instance] = w
			continue
		}
		next[t.Instance] = newWatcher(g, t)
	}
	old := g.watchers
	g.watchers = next
	for name, w := range old {
		if next[name] != w {
			w.stop()
		}
	}
	for name, w := range next {
		if old[name] != w {
			g.observer.wait.Go(w.run)
		}
	}
}

func (g *group) close() {
	for _, w := range g.watchers {
		w.stop()
	}
	g.watchers = map[string]*watcher{}
	g.shut(g.client.Load())
}

func (g *group) shut(c *http.Client) {
	if c != nil {
		c.CloseIdleConnections()
	}
}

// url is a path of an instance's control API.
func (g *group) url(instance, path string) string {
	return "https://" + net.JoinHostPort(instance, strconv.Itoa(g.observer.o.Port)) + path
}
