package control

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/streaming/pkg/httpstream"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// authority signs certificates of one Cluster.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, Subject: pkix.Name{CommonName: "ca"}})
	return a
}

func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

func (a *authority) pair(name string) (certificate, key []byte) {
	a.t.Helper()
	cert, private := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}})
	der, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func (a *authority) credentials() Credentials {
	certificate, key := a.pair(api.SubjectControl)
	return Credentials{CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw}), Certificate: certificate, Key: key}
}

// serve is an instance's control API; the Dialer leads to it whatever the Pod.
func (a *authority) serve(instance string, answer http.HandlerFunc) Dialer {
	a.t.Helper()
	certificate, key := a.pair(instance)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		a.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	s := httptest.NewUnstartedServer(answer)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS13}
	s.StartTLS()
	a.t.Cleanup(s.Close)
	return func(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
		if namespace != "a" || pod != "c1-1" || port != api.PortControl {
			a.t.Errorf("dialled %s/%s:%d", namespace, pod, port)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}
}

func aPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c1-1", UID: "pod-1"}}
}

func report(r protocol.Report) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodGet || q.URL.Path != protocol.PathStatus || q.URL.RawQuery != "" {
			http.Error(w, "not asked for a report", http.StatusTeapot)
			return
		}
		_ = json.NewEncoder(w).Encode(r)
	}
}

func TestAReportIsThatOfTheVeryPod(t *testing.T) {
	a := newAuthority(t)
	right := protocol.Report{Instance: "c1-1", PodUID: "pod-1", ClusterUID: "uid"}
	got, err := Ask(t.Context(), a.serve("c1-1", report(right)), a.credentials(), "uid", aPod())
	if err != nil || got.Instance != "c1-1" {
		t.Fatalf("%+v, %v", got, err)
	}
	for name, change := range map[string]func(*protocol.Report){
		"another instance": func(r *protocol.Report) { r.Instance = "c1-2" },
		"a former Pod":     func(r *protocol.Report) { r.PodUID = "pod-0" },
		"another Cluster":  func(r *protocol.Report) { r.ClusterUID = "uid-0" },
	} {
		wrong := right
		change(&wrong)
		if _, err := Ask(t.Context(), a.serve("c1-1", report(wrong)), a.credentials(), "uid", aPod()); err == nil || !strings.Contains(err.Error(), "report of another Pod") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhoeverIsNotTheInstanceIsNotBelieved(t *testing.T) {
	a, b := newAuthority(t), newAuthority(t)
	right := report(protocol.Report{Instance: "c1-1", PodUID: "pod-1", ClusterUID: "uid"})
	for name, dial := range map[string]Dialer{"a certificate of another name": a.serve("c1-2", right), "of another authority": b.serve("c1-1", right)} {
		if _, err := Ask(t.Context(), dial, a.credentials(), "uid", aPod()); err == nil || !strings.Contains(err.Error(), "certificate") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatAnInstanceSaysInsteadOfAReportIsShown(t *testing.T) {
	a := newAuthority(t)
	refuse := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(protocol.Problem{Error: "only the operator may read"})
	}
	if _, err := Ask(t.Context(), a.serve("c1-1", refuse), a.credentials(), "uid", aPod()); err == nil || !strings.Contains(err.Error(), "403 Forbidden: only the operator may read") {
		t.Errorf("%v", err)
	}
	if _, err := Ask(t.Context(), nil, Credentials{}, "uid", aPod()); err == nil || !strings.Contains(err.Error(), "the client certificate") {
		t.Errorf("%v", err)
	}
}

func TestAQuestionEndsWithItsContext(t *testing.T) {
	a := newAuthority(t)
	ctx, cancel := context.WithCancel(t.Context())
	dial := a.serve("c1-1", func(_ http.ResponseWriter, q *http.Request) { cancel(); <-q.Context().Done() })
	if _, err := Ask(ctx, dial, a.credentials(), "uid", aPod()); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// way is a connection through an API server to a port.
type way struct {
	httpstream.Connection
	made   []http.Header
	closed chan struct{}
	fails  string
}

type end struct {
	httpstream.Stream
	io.Reader
}

func (e end) Read(b []byte) (int, error)  { return e.Reader.Read(b) }
func (e end) Write(b []byte) (int, error) { return len(b), nil }
func (e end) Close() error                { return nil }
func (e end) Reset() error                { return nil }

func (w *way) CreateStream(h http.Header) (httpstream.Stream, error) {
	w.made = append(w.made, h.Clone())
	if h.Get(corev1.StreamType) == corev1.StreamTypeError {
		return end{Reader: strings.NewReader(w.fails)}, nil
	}
	return end{Reader: bytes.NewReader([]byte("hello"))}, nil
}

func (w *way) Close() error { close(w.closed); return nil }

func (w *way) Dial(...string) (httpstream.Connection, string, error) { return w, "", nil }

func TestAWayIntoAPodIsOpenedForThePortAndClosedWhenTheNodeSaysThatItLeadsNowhere(t *testing.T) {
	w := &way{closed: make(chan struct{}), fails: "nobody listens on 8443"}
	conn, err := open(t.Context(), w, 8443)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-w.closed:
	case <-time.After(10 * time.Second):
		t.Fatal("it stays open")
	}
	if len(w.made) != 2 || w.made[0].Get(corev1.PortHeader) != "8443" || w.made[0].Get(corev1.StreamType) != "error" || w.made[1].Get(corev1.StreamType) != "data" {
		t.Errorf("streams %v", w.made)
	}
	if text, err := io.ReadAll(conn); string(text) != "hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

type refusing struct{ err error }

func (r refusing) Dial(...string) (httpstream.Connection, string, error) { return nil, "", r.err }

func TestRefusalOfTheAPIServerIsToldApartFromAnInstanceThatDoesNotAnswer(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "pods/portforward"}, "c1-1", errors.New("not you"))
	dial := func(ctx context.Context, _, _ string, port int) (net.Conn, error) {
		return open(ctx, refusing{&httpstream.UpgradeFailureError{Cause: forbidden}}, port)
	}
	if _, err := Ask(t.Context(), dial, newAuthority(t).credentials(), "uid", aPod()); !apierrors.IsForbidden(err) {
		t.Errorf("%v", err)
	}
}

type stuck struct{ until chan struct{} }

func (s stuck) Dial(...string) (httpstream.Connection, string, error) {
	<-s.until
	return nil, "", errors.New("too late")
}

func TestAWayThatIsNotOpenedInTimeIsGivenUp(t *testing.T) {
	until := make(chan struct{})
	defer close(until)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := open(ctx, stuck{until}, 8443); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
