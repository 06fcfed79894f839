package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"cnmsql.co/operator/instance/protocol"
)

const (
	// askTimeout bounds one round of questions, dialTimeout the part in which a peer's address may be silent:
	// a Pod that is there accepts a connection in milliseconds.
	askTimeout  = 2 * time.Second
	dialTimeout = time.Second
	maxReport   = 16 << 20 // bytes; a set of GTIDs can be long
)

// Asker asks other instances for their reports.
type Asker interface {
	// Ask asks all of them at once and returns who answered within a bounded time.
	Ask(ctx context.Context, instances []string) []protocol.Report
}

// Peers asks over the control API with the instance's own certificate. There is one per process.
type Peers struct {
	client  *http.Client
	address func(instance string) string
}

// NewPeers makes a Peers; address is where an instance's control API is, as host:port.
func NewPeers(certificates *Certificates, address func(instance string) string) *Peers {
	dialer := &net.Dialer{Timeout: dialTimeout}
	transport := &http.Transport{
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return certificates.dial(ctx, dialer, network, address)
		},
		// Questions are rare. A kept connection to a Pod whose node was lost would swallow the one that matters.
		DisableKeepAlives:      true,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return &Peers{client: &http.Client{Transport: transport}, address: address}
}

// Ask implements Asker. An answer that is not of the instance that was asked does not count.
func (p *Peers) Ask(ctx context.Context, instances []string) []protocol.Report {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	answers := make([]*protocol.Report, len(instances))
	var group sync.WaitGroup
	for i, instance := range instances {
		group.Go(func() {
			if r, err := p.ask(ctx, instance); err == nil && r.Instance == instance {
				answers[i] = r
			}
		})
	}
	group.Wait()
	out := make([]protocol.Report, 0, len(answers))
	for _, a := range answers {
		if a != nil {
			out = append(out, *a)
		}
	}
	return out
}

func (p *Peers) ask(ctx context.Context, instance string) (*protocol.Report, error) {
	report := &protocol.Report{}
	return report, p.call(ctx, instance, http.MethodGet, protocol.PathStatus, nil, report)
}

// Vouch implements Voters.
func (p *Peers) Vouch(ctx context.Context, instance string, q protocol.VouchQuestion) (protocol.VouchAnswer, error) {
	var a protocol.VouchAnswer
	body, err := json.Marshal(q)
	if err != nil {
		return a, fmt.Errorf("asking %s to vouch: %w", instance, err)
	}
	if err := p.call(ctx, instance, http.MethodPost, protocol.PathVouch, body, &a); err != nil {
		return a, err
	}
	if a.From != instance {
		return a, fmt.Errorf("asking %s to vouch: %q has answered", instance, a.From)
	}
	return a, nil
}

// call asks one instance and reads its answer into out.
func (p *Peers) call(ctx context.Context, instance, method, path string, body []byte, out any) error {
	request, err := http.NewRequestWithContext(ctx, method, "https://"+p.address(instance)+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("asking %s: %w", instance, err)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return fmt.Errorf("asking %s: %w", instance, err)
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxReport))
	if err != nil {
		return fmt.Errorf("reading the answer of %s: %w", instance, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("asking %s: status %d", instance, response.StatusCode)
	}
	if err := json.Unmarshal(answer, out); err != nil {
		return fmt.Errorf("reading the answer of %s: %w", instance, err)
	}
	return nil
}
