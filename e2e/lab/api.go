package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"cnmsql.co/operator/e2e/lab/internal/config"
)

// api asks the apiserver as the administrator, through the control socket.
type api struct{ client http.Client }

func (l lab) api() (*api, error) {
	crt, err := tls.LoadX509KeyPair(l.dir.PKI("admin.crt"), l.dir.PKI("admin.key"))
	if err != nil {
		return nil, fmt.Errorf("load the administrator's certificate: %w", err)
	}
	ca, err := os.ReadFile(l.dir.PKI("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("load the lab's authority: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &api{http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext:     l.inLab().DialContext,
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{crt}, RootCAs: pool},
	}}}, nil
}

// call sends body, or GETs when there is none, and reads the answer into out
// unless it is nil.
func (a *api) call(ctx context.Context, path, body string, out any) error {
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	q, err := http.NewRequestWithContext(ctx, method, "https://"+config.APIServer+path, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("ask the apiserver: %w", err)
	}
	q.Header.Set("Content-Type", "application/json")
	r, err := a.client.Do(q)
	if err != nil {
		return fmt.Errorf("ask the apiserver: %w", err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return fmt.Errorf("ask the apiserver: %w", err)
	}
	if r.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s: %s: %s", path, r.Status, message(b))
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("read the apiserver's answer: %w", err)
	}
	return nil
}

// message is the sentence in a Kubernetes Status, or the text itself.
func message(b []byte) string {
	var s struct{ Message string }
	if json.Unmarshal(b, &s) == nil && s.Message != "" {
		return s.Message
	}
	return strings.TrimSpace(string(b))
}

type conditions []struct{ Type, Status string }

func (cs conditions) isTrue(kind string) bool {
	for _, c := range cs {
		if c.Type == kind {
			return c.Status == "True"
		}
	}
	return false
}

// readyNodes says whether as many nodes are Ready, and if not, how many are.
func (a *api) readyNodes(ctx context.Context, want int) error {
	var l struct {
		Items []struct {
			Status struct{ Conditions conditions }
		}
	}
	if err := a.call(ctx, "/api/v1/nodes", "", &l); err != nil {
		return err
	}
	ready := 0
	for _, n := range l.Items {
		if n.Status.Conditions.isTrue("Ready") {
			ready++
		}
	}
	if ready != want {
		return fmt.Errorf("%d of %d nodes are Ready", ready, want)
	}
	return nil
}

func (a *api) deploymentAvailable(ctx context.Context, namespace, name string) error {
	var d struct {
		Status struct{ Conditions conditions }
	}
	if err := a.call(ctx, "/apis/apps/v1/namespaces/"+namespace+"/deployments/"+name, "", &d); err != nil {
		return err
	}
	if !d.Status.Conditions.isTrue("Available") {
		return fmt.Errorf("deployment %s/%s is not available", namespace, name)
	}
	return nil
}

// certManagerServes says whether an Issuer can be created: the webhook
// configurations carry their authority, and the webhook answers through them.
func (a *api) certManagerServes(ctx context.Context) error {
	for _, kind := range []string{"validating", "mutating"} {
		var c struct {
			Webhooks []struct{ ClientConfig struct{ CABundle string } }
		}
		path := "/apis/admissionregistration.k8s.io/v1/" + kind + "webhookconfigurations/cert-manager-webhook"
		if err := a.call(ctx, path, "", &c); err != nil {
			return err
		}
		for _, w := range c.Webhooks {
			if w.ClientConfig.CABundle == "" {
				return fmt.Errorf("the %s webhook has no authority yet", kind)
			}
		}
	}
	return a.call(ctx, "/apis/cert-manager.io/v1/namespaces/default/issuers?dryRun=All",
		`{"apiVersion":"cert-manager.io/v1","kind":"Issuer","metadata":{"name":"probe"},"spec":{"selfSigned":{}}}`, nil)
}
