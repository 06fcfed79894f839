package server_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"cnmsql.co/operator/instance/internal/mysqltest"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/server"
)

var errRefused = errors.New("refused")

// fakeInstance is what stands behind the control API.
type fakeInstance struct {
	mu    sync.Mutex
	asked int
	lines chan []byte
	ended int
	want  protocol.SemiSyncSettings
	vouch []protocol.VouchQuestion
	err   error
}

func (f *fakeInstance) Vouch(q protocol.VouchQuestion) protocol.VouchAnswer {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.vouch = append(f.vouch, q)
	return protocol.VouchAnswer{From: "c-1", Vouches: true, Instances: []string{"c-3"}}
}

func (f *fakeInstance) Fresh(context.Context) protocol.Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	return protocol.Report{Instance: "c-1", Sequence: uint64(f.asked)}
}

func (f *fakeInstance) Subscribe() (<-chan []byte, func()) {
	return f.lines, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ended++
	}
}

func (f *fakeInstance) SetSemiSync(_ context.Context, want protocol.SemiSyncSettings) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.want = want
	return f.err
}

func (f *fakeInstance) state() (asked, ended int, want protocol.SemiSyncSettings) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked, f.ended, f.want
}

// control is a control API that listens, with the authority of its Cluster.
type control struct {
	t    *testing.T
	pki  *mysqltest.PKI
	url  string
	end  context.CancelFunc
	fake *fakeInstance
}

func newControl(t *testing.T) *control {
	t.Helper()
	c := &control{t: t, pki: mysqltest.NewPKI(t), fake: &fakeInstance{lines: make(chan []byte, 1)}}
	own := c.pair("c-1")
	ctx, end := context.WithCancel(context.Background())
	c.end = end
	api := &server.Control{Cluster: "c", Reporter: c.fake, Settings: c.fake, Voter: c.fake, Refused: errRefused, Done: ctx.Done()}
	l := &server.Listener{Handler: api.Handler(), TLS: &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: c.pool(),
	}}
	socket, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.url = "https://" + socket.Addr().String()
	served := make(chan error, 1)
	go func() { served <- l.Serve(ctx, socket) }()
	t.Cleanup(func() {
		end()
		if err := <-served; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return c
}

func (c *control) pair(name string) tls.Certificate {
	c.t.Helper()
	p := c.pki.Issue(c.t, name)
	pair, err := tls.LoadX509KeyPair(p.Cert, p.Key)
	if err != nil {
		c.t.Fatal(err)
	}
	return pair
}

func (c *control) pool() *x509.CertPool {
	c.t.Helper()
	pem, err := os.ReadFile(c.pki.CA)
	if err != nil {
		c.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return pool
}

// as is a client with a certificate of the Cluster's authority for this name.
func (c *control) as(name string) *http.Client {
	c.t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion: tls.VersionTLS13, RootCAs: c.pool(), Certificates: []tls.Certificate{c.pair(name)},
	}}
	c.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func (c *control) do(client *http.Client, method, path, body string) (int, []byte) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.url+path, bytes.NewBufferString(body))
	if err != nil {
		c.t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var out bytes.Buffer
	if _, err := out.ReadFrom(response.Body); err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, out.Bytes()
}

func TestWhoMayDoWhat(t *testing.T) {
	c := newControl(t)
	cases := []struct {
		subject     string
		read, write int
	}{
		{"cnmsql-control", 200, 200},
		{"c-2", 200, 403},
		{"c-0", 403, 403},
		{"c", 403, 403},
		{"d-1", 403, 403},
		{"cnmsql-replication", 403, 403},
	}
	for _, who := range cases {
		t.Run(who.subject, func(t *testing.T) {
			client := c.as(who.subject)
			if code, body := c.do(client, http.MethodGet, protocol.PathStatus, ""); code != who.read {
				t.Errorf("reading: %d %s", code, body)
			}
			if code, body := c.do(client, http.MethodPut, protocol.PathSemiSync, `{"waitFor":2,"generation":7}`); code != who.write {
				t.Errorf("writing: %d %s", code, body)
			}
		})
	}
	if _, _, want := c.fake.state(); want != (protocol.SemiSyncSettings{WaitFor: 2, Generation: 7}) {
		t.Errorf("settings %+v", want)
	}
}

func TestAnInstanceAsksForItselfOnly(t *testing.T) {
	c := newControl(t)
	const question = `{"instance":"c-2","holder":"c-2/u","generation":7}`
	for _, w := range []struct {
		name, subject, body string
		code                int
	}{
		{"the holder", "c-2", question, 200},
		{"another instance for it", "c-3", question, 403},
		{"the operator", "cnmsql-control", question, 403},
		{"the operator for itself", "cnmsql-control", `{"instance":"cnmsql-control","holder":"cnmsql-control/u"}`, 403},
		{"an instance of another Cluster", "d-2", `{"instance":"d-2","holder":"d-2/u"}`, 403},
		{"with another's identity", "c-2", `{"instance":"c-2","holder":"c-3/u"}`, 403},
		{"no question", "c-2", `?`, 400},
	} {
		t.Run(w.name, func(t *testing.T) {
			code, body := c.do(c.as(w.subject), http.MethodPost, protocol.PathVouch, w.body)
			if code != w.code {
				t.Fatalf("%d %s", code, body)
			}
			var a protocol.VouchAnswer
			if err := json.Unmarshal(body, &a); code == 200 && (err != nil || !a.Vouches || a.From != "c-1" || len(a.Instances) != 1) {
				t.Errorf("%s %v", body, err)
			}
		})
	}
	if got := c.fake.vouch; len(got) != 1 || got[0] != (protocol.VouchQuestion{Instance: "c-2", Holder: "c-2/u", Generation: 7}) {
		t.Errorf("asked %+v", got)
	}
}

func TestAStrangersCertificateIsRefusedByTLS(t *testing.T) {
	c := newControl(t)
	stranger := &control{t: t, pki: mysqltest.NewPKI(t)}
	for name, certificates := range map[string][]tls.Certificate{"none": nil, "of another authority": {stranger.pair("cnmsql-control")}} {
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, RootCAs: c.pool(), Certificates: certificates,
		}}}
		response, err := client.Get(c.url + protocol.PathStatus)
		if err == nil {
			_ = response.Body.Close()
			t.Errorf("a client with a certificate %s was answered", name)
		}
	}
	if asked, _, _ := c.fake.state(); asked != 0 {
		t.Error("the instance was asked")
	}
}

func TestEachStatusIsReadAnew(t *testing.T) {
	c := newControl(t)
	client := c.as("c-2")
	for want := range uint64(3) {
		code, body := c.do(client, http.MethodGet, protocol.PathStatus, "")
		var r protocol.Report
		if err := json.Unmarshal(body, &r); err != nil || code != 200 || r.Sequence != want+1 {
			t.Errorf("%d %s %v", code, body, err)
		}
	}
}

func TestWhatIsWrongIsSaidInAProblem(t *testing.T) {
	c := newControl(t)
	client := c.as("cnmsql-control")
	cases := []struct {
		name, method, path, body string
		err                      error
		code                     int
	}{
		{"an unknown path", http.MethodGet, "/v2/status", "", nil, 404},
		{"another method", http.MethodDelete, protocol.PathStatus, "", nil, 404},
		{"a body that is no JSON", http.MethodPut, protocol.PathSemiSync, "waitFor", nil, 400},
		{"a body without end", http.MethodPut, protocol.PathSemiSync, `{"waitFor":` + string(bytes.Repeat([]byte("1"), 1<<17)), nil, 400},
		{"a wrong generation", http.MethodPut, protocol.PathSemiSync, `{"waitFor":1}`, fmt.Errorf("%w: generation 3", errRefused), 409},
		{"a server that fails", http.MethodPut, protocol.PathSemiSync, `{"waitFor":1}`, errors.New("no connection"), 500},
	}
	for _, w := range cases {
		t.Run(w.name, func(t *testing.T) {
			c.fake.mu.Lock()
			c.fake.err = w.err
			c.fake.mu.Unlock()
			code, body := c.do(client, w.method, w.path, w.body)
			var p protocol.Problem
			if err := json.Unmarshal(body, &p); err != nil || code != w.code || p.Error == "" {
				t.Errorf("%d %s %v", code, body, err)
			}
		})
	}
}

// watching opens a watch and returns its lines.
func (c *control) watching(ctx context.Context) *bufio.Scanner {
	c.t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+protocol.PathStatus+"?watch=true", nil)
	if err != nil {
		c.t.Fatal(err)
	}
	response, err := c.as("cnmsql-control").Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { _ = response.Body.Close() })
	return bufio.NewScanner(response.Body)
}

func (c *control) awaitEnded() {
	c.t.Helper()
	deadline := time.Now().Add(5 * time.Second)
	for {
		if _, ended, _ := c.fake.state(); ended == 1 {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatal("the subscription was not ended")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAWatchStreamsLinesAsTheyCome(t *testing.T) {
	c := newControl(t)
	ctx, cancel := context.WithCancel(t.Context())
	c.fake.lines <- []byte("{\"sequence\":1}\n")
	lines := c.watching(ctx)
	for i := 1; i <= 3; i++ {
		if !lines.Scan() {
			t.Fatal(lines.Err())
		}
		if want := fmt.Sprintf(`{"sequence":%d}`, i); lines.Text() != want {
			t.Errorf("line %q, want %q", lines.Text(), want)
		}
		c.fake.lines <- fmt.Appendf(nil, "{\"sequence\":%d}\n", i+1)
	}
	cancel()
	c.awaitEnded()
}

func TestTheEndOfTheManagerEndsItsWatches(t *testing.T) {
	c := newControl(t)
	c.fake.lines <- []byte("{}\n")
	lines := c.watching(t.Context())
	if !lines.Scan() {
		t.Fatal(lines.Err())
	}
	c.end()
	if lines.Scan() {
		t.Errorf("line %q after the end", lines.Text())
	}
	c.awaitEnded()
}
