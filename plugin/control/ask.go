package control

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

const (
	// answerTimeout bounds one question, the way through the API server included.
	answerTimeout = 5 * time.Second
	// maxReport bounds one report, in bytes: sets of transactions can be long.
	maxReport = 16 << 20
)

// Dialer opens a connection to a port of a Pod.
type Dialer func(ctx context.Context, namespace, pod string, port int) (net.Conn, error)

// Credentials are the content of the Secret <cluster>-client-tls, in PEM.
type Credentials struct {
	CA, Certificate, Key []byte
}

// CredentialsOf takes them from that Secret.
func CredentialsOf(s *corev1.Secret) Credentials {
	return Credentials{CA: s.Data["ca.crt"], Certificate: s.Data[corev1.TLSCertKey], Key: s.Data[corev1.TLSPrivateKeyKey]}
}

// Ask asks the manager of an instance's Pod for a fresh report.
func Ask(ctx context.Context, dial Dialer, c Credentials, clusterUID string, pod *corev1.Pod) (*protocol.Report, error) {
	config, err := c.config()
	if err != nil {
		return nil, fmt.Errorf("the client certificate: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	asker := &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: config, DisableKeepAlives: true, DisableCompression: true, TLSHandshakeTimeout: answerTimeout,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return dial(ctx, pod.Namespace, pod.Name, api.PortControl)
			},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	// The name is what TLS verifies: the instance's.
	url := "https://" + net.JoinHostPort(pod.Name, strconv.Itoa(api.PortControl)) + protocol.PathStatus
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", pod.Name, err)
	}
	response, err := asker.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", pod.Name, err)
	}
	defer func() { _ = response.Body.Close() }()
	return read(response, clusterUID, pod)
}

// read accepts a report of the very Pod that was asked.
func read(response *http.Response, clusterUID string, pod *corev1.Pod) (*protocol.Report, error) {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxReport))
	if err != nil {
		return nil, fmt.Errorf("reading the report of %s: %w", pod.Name, err)
	}
	if response.StatusCode != http.StatusOK {
		problem := protocol.Problem{}
		_ = json.Unmarshal(body, &problem) // without one the status says enough
		return nil, fmt.Errorf("%s answered %s: %s", pod.Name, response.Status, problem.Error)
	}
	r := &protocol.Report{}
	if err := json.Unmarshal(body, r); err != nil {
		return nil, fmt.Errorf("report of %s: %w", pod.Name, err)
	}
	if err := r.From(pod.Name, string(pod.UID), clusterUID); err != nil {
		return nil, err
	}
	return r, nil
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
