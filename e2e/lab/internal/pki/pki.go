// Package pki makes the keys and certificates of a lab, and the kubeconfigs
// that carry them. Each lab has an authority of its own that lives as long as
// the lab does.
//
// It may import the standard library alone.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// lifetime is that of every certificate; the start lies back an hour for
// clocks that differ.
const (
	lifetime = 365 * 24 * time.Hour
	backdate = time.Hour
)

// Pair is a certificate and its key, both in PEM.
type Pair struct{ Cert, Key []byte }

// Request says whom a certificate is for. SANs are addresses or DNS names.
type Request struct {
	CommonName string
	Groups     []string
	SANs       []string
}

// Authority signs certificates.
type Authority struct {
	// Cert is the authority's own certificate in PEM; Key its key.
	Pair
	now  time.Time
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority whose certificates are valid at now.
func NewAuthority(now time.Time) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the authority's key: %w", err)
	}
	a := &Authority{now: now, key: key}
	t, err := a.template(Request{CommonName: "lab-ca"})
	if err != nil {
		return nil, err
	}
	t.IsCA, t.BasicConstraintsValid = true, true
	t.KeyUsage |= x509.KeyUsageCertSign
	t.ExtKeyUsage = nil
	a.cert = t
	if a.Pair, err = a.sign(t, key); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(a.Cert)
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, fmt.Errorf("read back the authority's certificate: %w", err)
	}
	return a, nil
}

// Issue makes a certificate that is good both for a client and for a server.
func (a *Authority) Issue(r Request) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the key of %s: %w", r.CommonName, err)
	}
	t, err := a.template(r)
	if err != nil {
		return Pair{}, err
	}
	return a.sign(t, key)
}

func (a *Authority) template(r Request) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	t := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: r.CommonName, Organization: r.Groups},
		NotBefore:    a.now.Add(-backdate),
		NotAfter:     a.now.Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, s := range r.SANs {
		if ip := net.ParseIP(s); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, s)
		}
	}
	return t, nil
}

func (a *Authority) sign(t *x509.Certificate, key *ecdsa.PrivateKey) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("sign the certificate of %s: %w", t.Subject.CommonName, err)
	}
	k, err := keyPEM(key)
	if err != nil {
		return Pair{}, err
	}
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), Key: k}, nil
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("write a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// SigningKey makes a key for service account tokens: Cert holds the public key.
func SigningKey() (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("make the service account key: %w", err)
	}
	k, err := keyPEM(key)
	if err != nil {
		return Pair{}, err
	}
	pub, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return Pair{}, fmt.Errorf("write the service account key: %w", err)
	}
	return Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub}), Key: k}, nil
}

// Kubeconfig is a kubeconfig for server, an address with its port, that trusts
// the authority and carries the client's certificate.
func (a *Authority) Kubeconfig(server string, client Pair) []byte {
	b64 := base64.StdEncoding.EncodeToString
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster: {server: "https://%s", certificate-authority-data: %s}
users:
- name: lab
  user: {client-certificate-data: %s, client-key-data: %s}
contexts:
- name: lab
  context: {cluster: lab, user: lab}
current-context: lab
`, server, b64(a.Cert), b64(client.Cert), b64(client.Key))
}
