package observer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"cnmsql.co/operator/instance/protocol"
)

var shop = types.NamespacedName{Namespace: "shop", Name: "c1"}

const patience = 10 * time.Second

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{key: newKey(t)}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, a.key.Public(), a.key)
	check(t, err)
	a.cert, err = x509.ParseCertificate(der)
	check(t, err)
	a.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// issue returns credentials for a name; as a server's certificate it is valid for that host name.
func (a *authority) issue(t *testing.T, name string) Credentials {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	check(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	return Credentials{
		CA:          a.pem,
		Certificate: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:         pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// manager plays an instance manager.
type manager struct {
	t      *testing.T
	target Target
	server *http.Server

	mu       sync.Mutex
	report   protocol.Report
	watchers map[chan protocol.Report]struct{}
	streams  int
	mute     bool
	slow     time.Duration
	subject  string
	settings []protocol.SemiSyncSettings
}

// bench is an observer with managers on loopback addresses of their own and one port.
type bench struct {
	*gomega.WithT
	t         *testing.T
	authority *authority
	observer  *Observer
	port      int
	managers  []*manager
	queue     workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func newBench(t *testing.T, instances int) *bench {
	t.Helper()
	b := &bench{WithT: gomega.NewWithT(t), t: t, authority: newAuthority(t)}
	for n := range instances {
		b.start(n + 1)
	}
	b.observer = New(Options{Log: logr.Discard(), Port: b.port, Silence: 500 * time.Millisecond})
	t.Cleanup(b.observer.Close)
	b.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	check(t, b.observer.Changes().Start(t.Context(), b.queue))
	return b
}

// start runs the manager of c1-<n> on 127.0.0.<n>.
func (b *bench) start(n int) *manager {
	b.t.Helper()
	ip := fmt.Sprintf("127.0.0.%d", n)
	name := fmt.Sprintf("c1-%d", n)
	m := &manager{t: b.t, target: Target{Instance: name, PodUID: "pod-" + name, PodIP: ip}, watchers: map[chan protocol.Report]struct{}{}}
	m.report = protocol.Report{Instance: name, PodUID: m.target.PodUID, ClusterUID: "uid-of-c1", Boot: "boot-1", Server: protocol.Server{State: protocol.ServerRunning}}
	listener, err := net.Listen("tcp", fmt.Sprintf("%s:%d", ip, b.port))
	check(b.t, err)
	b.port = listener.Addr().(*net.TCPAddr).Port
	m.serve(b.authority.issue(b.t, name), listener)
	b.managers = append(b.managers, m)
	return m
}

func (m *manager) serve(c Credentials, listener net.Listener) {
	pair, err := tls.X509KeyPair(c.Certificate, c.Key)
	check(m.t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(c.CA)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+protocol.PathStatus, m.status)
	mux.HandleFunc("PUT "+protocol.PathSemiSync, m.semiSync)
	m.server = &http.Server{Handler: mux, ErrorLog: quiet(), TLSConfig: &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
	}}
	go func() { _ = m.server.ServeTLS(listener, "", "") }()
	m.t.Cleanup(func() { _ = m.server.Close() })
}

func (m *manager) status(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	m.subject = r.TLS.VerifiedChains[0][0].Subject.CommonName
	slow := m.slow
	m.mu.Unlock()
	if r.URL.Query().Get("watch") != "true" {
		time.Sleep(slow)
		_ = json.NewEncoder(w).Encode(m.next(nil))
		return
	}
	lines := make(chan protocol.Report, 100)
	m.mu.Lock()
	m.streams++
	m.watchers[lines] = struct{}{}
	mute := m.mute
	m.mu.Unlock()
	defer func() { m.mu.Lock(); delete(m.watchers, lines); m.mu.Unlock() }()
	if !mute {
		lines <- m.next(nil)
	}
	out := http.NewResponseController(w)
	beat := time.NewTicker(100 * time.Millisecond)
	defer beat.Stop()
	for {
		var report protocol.Report
		select {
		case <-r.Context().Done():
			return
		case report = <-lines:
			if report.Instance == "" {
				return
			}
		case <-beat.C:
			if m.muted() {
				continue
			}
			report = m.next(nil)
		}
		if json.NewEncoder(w).Encode(report) != nil || out.Flush() != nil {
			return
		}
	}
}

func (m *manager) semiSync(w http.ResponseWriter, r *http.Request) {
	var s protocol.SemiSyncSettings
	_ = json.NewDecoder(r.Body).Decode(&s)
	if s.Generation != 3 {
		w.WriteHeader(http.StatusConflict)
		_ = json.NewEncoder(w).Encode(protocol.Problem{Error: "another generation"})
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.settings = append(m.settings, s)
}

func (m *manager) muted() bool { m.mu.Lock(); defer m.mu.Unlock(); return m.mute }

func (m *manager) opened() int { m.mu.Lock(); defer m.mu.Unlock(); return m.streams }

// next is the report after a change, or after none.
func (m *manager) next(change func(*protocol.Report)) protocol.Report {
	m.mu.Lock()
	defer m.mu.Unlock()
	if change != nil {
		change(&m.report)
	}
	m.report.Sequence++
	m.report.ReadAt = time.Now()
	return m.report
}

// push tells those who watch of a change at once.
func (m *manager) push(change func(*protocol.Report)) {
	r := m.next(change)
	m.mu.Lock()
	defer m.mu.Unlock()
	for w := range m.watchers {
		w <- r
	}
}

// endStreams ends all streams; the manager goes on.
func (m *manager) endStreams() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for w := range m.watchers {
		w <- protocol.Report{}
	}
}

func (b *bench) follow(managers ...*manager) {
	b.t.Helper()
	b.followWith(b.authority.issue(b.t, "cnmsql-control"), managers...)
}

func (b *bench) followWith(c Credentials, managers ...*manager) {
	b.t.Helper()
	targets := make([]Target, 0, len(managers))
	for _, m := range managers {
		targets = append(targets, m.target)
	}
	check(b.t, b.observer.Follow(shop, "uid-of-c1", c, targets))
}

func (b *bench) look(m *manager) Sight { return b.observer.Look(shop, m.target.Instance) }

func (b *bench) heard(m *manager) {
	b.t.Helper()
	b.Eventually(func() bool { return b.look(m).Report != nil }).WithTimeout(patience).Should(gomega.BeTrue())
}

func (b *bench) silent(m *manager) {
	b.t.Helper()
	b.Eventually(func() bool { s := b.look(m); return s.Asked && s.Report == nil }).WithTimeout(patience).Should(gomega.BeTrue())
}

// woken takes the wake-ups since it was last called.
func (b *bench) woken() int {
	n := b.queue.Len()
	for range n {
		item, _ := b.queue.Get()
		b.queue.Done(item)
	}
	return n
}
