package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

func files(t *testing.T) map[string][]byte {
	t.Helper()
	fs, err := Files(now, 2, "127.0.0.1:4321")
	if err != nil {
		t.Fatal(err)
	}
	return fs
}

func certificate(t *testing.T, b []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(b)
	if block == nil {
		t.Fatalf("no PEM in %q", b)
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryCertificateIsSignedByTheLabsAuthorityAndMatchesItsKey(t *testing.T) {
	fs := files(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(fs["pki/ca.crt"])
	seen := 0
	for name, b := range fs {
		base, ok := strings.CutSuffix(name, ".crt")
		if !ok || base == "pki/ca" {
			continue
		}
		seen++
		opts := x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
		if _, err := certificate(t, b).Verify(opts); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := tls.X509KeyPair(b, fs[base+".key"]); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if seen != 6 { // apiserver, kubelet-client, front-proxy-client, admin, one per node
		t.Errorf("%d certificates, want 6", seen)
	}
}

func TestTheApiserverIsTrustedFromOutsideAndInside(t *testing.T) {
	c := certificate(t, files(t)["pki/apiserver.crt"])
	for _, name := range []string{"127.0.0.1", "172.30.0.1", "10.96.0.1", "localhost", "kubernetes.default.svc"} {
		if err := c.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	if err := c.VerifyHostname("172.30.0.11"); err == nil {
		t.Error("the apiserver's certificate is good for a node's address")
	}
}

func TestANodesCertificateIsForThatNodeOnly(t *testing.T) {
	c := certificate(t, files(t)["pki/serving-n2.crt"])
	if c.Subject.CommonName != "system:node:n2" || !slices.Equal(c.Subject.Organization, []string{"system:nodes"}) {
		t.Errorf("subject is %v", c.Subject)
	}
	if c.VerifyHostname("172.30.0.12") != nil || c.VerifyHostname("172.30.0.11") == nil {
		t.Errorf("addresses are %v", c.IPAddresses)
	}
	if c.IsCA {
		t.Error("a node's certificate can sign others")
	}
}

func TestOnlyTheKubeconfigForUsersPointsOutside(t *testing.T) {
	for name, b := range files(t) {
		want := "https://172.30.0.1:6443"
		switch {
		case name == "kubeconfig":
			want = "https://127.0.0.1:4321"
		case !strings.HasSuffix(name, ".kubeconfig"):
			continue
		}
		if !strings.Contains(string(b), `server: "`+want+`"`) {
			t.Errorf("%s does not point to %s", name, want)
		}
	}
}

func TestCertificatesAreValidNowAndForAYear(t *testing.T) {
	c := certificate(t, files(t)["pki/admin.crt"])
	if !c.NotBefore.Before(now) || c.NotAfter.Before(now.Add(364*24*time.Hour)) {
		t.Errorf("valid from %v to %v", c.NotBefore, c.NotAfter)
	}
	if !slices.Contains(c.Subject.Organization, "system:masters") {
		t.Errorf("the administrator's groups are %v", c.Subject.Organization)
	}
}
