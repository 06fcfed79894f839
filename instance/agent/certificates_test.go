package agent

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"cnmsql.co/operator/instance/internal/mysqltest"
	"cnmsql.co/operator/instance/protocol"
)

// mounted is a directory as the kubelet makes it: a link "..data" to the present version.
type mounted struct {
	t       *testing.T
	dir     string
	version int
}

func newMounted(t *testing.T) *mounted { return &mounted{t: t, dir: t.TempDir()} }

func (m *mounted) write(cert, key, ca string) {
	m.t.Helper()
	m.version++
	name := "..v" + strconv.Itoa(m.version)
	must := func(err error) {
		m.t.Helper()
		if err != nil {
			m.t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(m.dir, name), 0o700))
	for file, from := range map[string]string{"tls.crt": cert, "tls.key": key, "ca.crt": ca} {
		b, err := os.ReadFile(from)
		must(err)
		must(os.WriteFile(filepath.Join(m.dir, name, file), b, 0o600))
		if _, err := os.Lstat(filepath.Join(m.dir, file)); err != nil {
			must(os.Symlink(filepath.Join("..data", file), filepath.Join(m.dir, file)))
		}
	}
	must(os.Symlink(name, filepath.Join(m.dir, "..new")))
	must(os.Rename(filepath.Join(m.dir, "..new"), filepath.Join(m.dir, "..data")))
}

func TestACertificateThatChangedIsReadAndTheServerTold(t *testing.T) {
	pki := mysqltest.NewPKI(t)
	first, second := pki.Issue(t, "c-1"), pki.Issue(t, "c-2")
	bubble(t, func(t *testing.T) {
		m := newMounted(t)
		m.write(first.Cert, first.Key, pki.CA)
		var told atomic.Int32
		var failing atomic.Bool
		c := NewCertificates(m.dir, func(context.Context) error {
			if failing.Load() {
				return errors.New("the server is busy")
			}
			told.Add(1)
			return nil
		}, discard())
		if err := c.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		background(t, c.Run)
		before := c.current.Load()
		time.Sleep(time.Minute)
		if told.Load() != 0 {
			t.Error("told although nothing has changed")
		}
		failing.Store(true)
		m.write(second.Cert, second.Key, pki.CA)
		time.Sleep(certificatePoll + time.Second)
		if c.current.Load() == before {
			t.Error("the new certificate is not used")
		}
		failing.Store(false)
		time.Sleep(certificatePoll + time.Second)
		if told.Load() != 1 {
			t.Errorf("the server was told %d times, want once it could be", told.Load())
		}
		time.Sleep(time.Minute)
		if told.Load() != 1 {
			t.Errorf("told %d times", told.Load())
		}
	})
}

func TestAHalfWrittenPairIsNotUsed(t *testing.T) {
	pki := mysqltest.NewPKI(t)
	first, second := pki.Issue(t, "c-1"), pki.Issue(t, "c-2")
	m := newMounted(t)
	c := NewCertificates(m.dir, nil, discard())
	if _, err := c.Load(); err == nil {
		t.Fatal("loaded from an empty directory")
	}
	m.write(first.Cert, first.Key, pki.CA)
	if changed, err := c.Load(); !changed || err != nil {
		t.Fatal(changed, err)
	}
	before := c.current.Load()
	m.write(second.Cert, first.Key, pki.CA)
	if changed, err := c.Load(); changed || err == nil {
		t.Error("a key of another certificate was accepted")
	}
	m.write(second.Cert, second.Key, second.Key)
	if changed, err := c.Load(); changed || err == nil {
		t.Error("an authority that is none was accepted")
	}
	if c.current.Load() != before {
		t.Error("the working pair was given up")
	}
}

// peer is another instance's control API.
func peer(t *testing.T, pki *mysqltest.PKI, name string, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	p := pki.Issue(t, name)
	m := newMounted(t)
	m.write(p.Cert, p.Key, pki.CA)
	c := NewCertificates(m.dir, nil, discard())
	if _, err := c.Load(); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(handler)
	s.TLS = c.ServerTLS()
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func asking(t *testing.T, pki *mysqltest.PKI, addresses map[string]string) *Peers {
	t.Helper()
	p := pki.Issue(t, "c-2")
	m := newMounted(t)
	m.write(p.Cert, p.Key, pki.CA)
	c := NewCertificates(m.dir, nil, discard())
	if _, err := c.Load(); err != nil {
		t.Fatal(err)
	}
	return NewPeers(c, func(i string) string { return addresses[i] })
}

func reporting(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(protocol.Report{Instance: name})
	}
}

func TestPeersAreAskedAtOnceAndOnlyTrueAnswersCount(t *testing.T) {
	pki := mysqltest.NewPKI(t)
	good := peer(t, pki, "127.0.0.1", reporting("c-1"))
	other := peer(t, pki, "127.0.0.1", reporting("c-9"))
	stranger := peer(t, mysqltest.NewPKI(t), "127.0.0.1", reporting("c-4"))
	slow := peer(t, pki, "127.0.0.1", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	broken := peer(t, pki, "127.0.0.1", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	address := func(s *httptest.Server) string { return s.Listener.Addr().String() }
	p := asking(t, pki, map[string]string{
		"c-1": address(good), "c-3": address(other), "c-4": address(stranger), "c-5": address(slow),
		"c-6": closed.Addr().String(), "c-7": address(broken),
	})
	started := time.Now()
	answers := p.Ask(t.Context(), []string{"c-1", "c-3", "c-4", "c-5", "c-6", "c-7"})
	if len(answers) != 1 || answers[0].Instance != "c-1" {
		t.Errorf("answers %+v", answers)
	}
	if d := time.Since(started); d > askTimeout+time.Second {
		t.Errorf("took %s", d)
	}
}

func TestAnInstanceIsAskedToVouchAndAnswersForItself(t *testing.T) {
	pki := mysqltest.NewPKI(t)
	vouching := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			var q protocol.VouchQuestion
			if r.Method != http.MethodPost || r.URL.Path != protocol.PathVouch || json.NewDecoder(r.Body).Decode(&q) != nil || q.Holder != "c-2/u" {
				w.WriteHeader(http.StatusBadRequest)
				return
			}
			_ = json.NewEncoder(w).Encode(protocol.VouchAnswer{From: name, Vouches: true, Instances: []string{"c-4"}})
		}
	}
	good, other := peer(t, pki, "127.0.0.1", vouching("c-1")), peer(t, pki, "127.0.0.1", vouching("c-9"))
	p := asking(t, pki, map[string]string{"c-1": good.Listener.Addr().String(), "c-3": other.Listener.Addr().String()})
	q := protocol.VouchQuestion{Instance: "c-2", Holder: "c-2/u", Generation: 3}
	if a, err := p.Vouch(t.Context(), "c-1", q); err != nil || !a.Vouches || len(a.Instances) != 1 {
		t.Errorf("%+v, %v", a, err)
	}
	if a, err := p.Vouch(t.Context(), "c-3", q); err == nil {
		t.Errorf("another's answer counts: %+v", a)
	}
	if a, err := p.Vouch(t.Context(), "c-1", protocol.VouchQuestion{}); err == nil {
		t.Errorf("a refusal of the question counts: %+v", a)
	}
}

func TestAskingLeavesNothingBehind(t *testing.T) {
	pki := mysqltest.NewPKI(t)
	good := peer(t, pki, "127.0.0.1", reporting("c-1"))
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	p := asking(t, pki, map[string]string{"c-1": good.Listener.Addr().String(), "c-3": closed.Addr().String()})
	ask := func(n int) {
		for range n {
			if got := p.Ask(t.Context(), []string{"c-1", "c-3"}); len(got) != 1 {
				t.Fatalf("answers %+v", got)
			}
		}
	}
	ask(5)
	before, files := runtime.NumGoroutine(), openFiles(t)
	ask(200)
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before+5 || openFiles(t) > files+5 {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines and %d files, before %d and %d", runtime.NumGoroutine(), openFiles(t), before, files)
		}
		runtime.Gosched()
	}
}

func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func TestTheControlAPIRefusesWhoShowsNoCertificate(t *testing.T) {
	pki := mysqltest.NewPKI(t)
	s := peer(t, pki, "127.0.0.1", reporting("c-1"))
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // it is the client that is tested
	response, err := client.Get(s.URL)
	if err == nil {
		_ = response.Body.Close()
		t.Error("answered a client without a certificate")
	}
}
