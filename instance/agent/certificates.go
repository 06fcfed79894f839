package agent

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
)

// certificatePoll is how often the mounted files are looked at. Polling three small files is simpler than
// watching a directory whose links the kubelet swaps, and cannot miss a change.
const certificatePoll = 5 * time.Second

// Certificates is the key pair of this instance and the authority of its Cluster, as mounted. It serves the
// control API and asks peers; the server reads the same files and is told to when they change.
type Certificates struct {
	dir     string
	current atomic.Pointer[pair]
	// reload tells the server to read its files anew; an error is tried again at the next look.
	reload func(context.Context) error
	log    logr.Logger
}

type pair struct {
	cert, key, ca []byte
	tls           tls.Certificate
	pool          *x509.CertPool
}

// NewCertificates reads nothing yet; dir holds tls.crt, tls.key and ca.crt.
func NewCertificates(dir string, reload func(context.Context) error, log logr.Logger) *Certificates {
	return &Certificates{dir: dir, reload: reload, log: log}
}

// Load reads the files, and keeps what it had when they are not a valid whole.
func (c *Certificates) Load() (changed bool, err error) {
	next, err := readPair(c.dir)
	if err != nil {
		return false, err
	}
	if old := c.current.Load(); old != nil && bytes.Equal(old.cert, next.cert) && bytes.Equal(old.key, next.key) && bytes.Equal(old.ca, next.ca) {
		return false, nil
	}
	c.current.Store(next)
	return true, nil
}

// Await waits until the files are there and valid.
func (c *Certificates) Await(ctx context.Context) error {
	said := false
	for {
		_, err := c.Load()
		if err == nil {
			return nil
		}
		if !said {
			c.log.Info("waiting for the certificate", "error", err.Error())
			said = true
		}
		if sleep(ctx, time.Second); ctx.Err() != nil {
			return fmt.Errorf("waiting for the certificate: %w", err)
		}
	}
}

// Run reloads until ctx ends.
func (c *Certificates) Run(ctx context.Context) error {
	told, failing := c.current.Load(), false
	for {
		if sleep(ctx, certificatePoll); ctx.Err() != nil {
			return nil //nolint:nilerr // the end of ctx is how Run ends
		}
		if changed, err := c.Load(); changed {
			c.log.Info("the certificate has changed")
		} else if err != nil && !failing {
			c.log.Info("keeping the present certificate", "error", err.Error())
		} else if err == nil {
			failing = false
		}
		current := c.current.Load()
		if current == nil || current == told {
			continue
		}
		if err := c.reload(ctx); err != nil {
			if !failing {
				c.log.Info("the server does not use the new certificate yet", "error", err.Error())
			}
			failing = true
			continue
		}
		told, failing = current, false
	}
}

// readPair reads the files of one version: the kubelet swaps the link "..data" to a new directory.
func readPair(dir string) (*pair, error) {
	if data, err := filepath.EvalSymlinks(filepath.Join(dir, "..data")); err == nil {
		dir = data
	}
	p := &pair{pool: x509.NewCertPool()}
	var errs [3]error
	p.cert, errs[0] = os.ReadFile(filepath.Join(dir, "tls.crt"))
	p.key, errs[1] = os.ReadFile(filepath.Join(dir, "tls.key"))
	p.ca, errs[2] = os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	var err error
	if p.tls, err = tls.X509KeyPair(p.cert, p.key); err != nil {
		return nil, fmt.Errorf("the certificate and its key in %s do not belong together: %w", dir, err)
	}
	if !p.pool.AppendCertsFromPEM(p.ca) {
		return nil, fmt.Errorf("%s holds no certificate", filepath.Join(dir, "ca.crt"))
	}
	return p, nil
}

var errNoCertificate = errors.New("there is no certificate yet")

// ServerTLS is for the control API: every client shows a certificate of the Cluster's authority.
func (c *Certificates) ServerTLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			p := c.current.Load()
			if p == nil {
				return nil, errNoCertificate
			}
			return &tls.Config{
				MinVersion:   tls.VersionTLS13,
				Certificates: []tls.Certificate{p.tls},
				ClientAuth:   tls.RequireAndVerifyClientCert,
				ClientCAs:    p.pool,
				NextProtos:   []string{"http/1.1"},
			}, nil
		},
	}
}

// dial connects to another instance with the certificates of this moment.
func (c *Certificates) dial(ctx context.Context, dialer *net.Dialer, network, address string) (net.Conn, error) {
	p := c.current.Load()
	if p == nil {
		return nil, errNoCertificate
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	raw, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	conn := tls.Client(raw, &tls.Config{
		MinVersion:   tls.VersionTLS13,
		ServerName:   host,
		RootCAs:      p.pool,
		Certificates: []tls.Certificate{p.tls},
	})
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("connecting to %s: %w", address, err)
	}
	return conn, nil
}
