package mysqltest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// ReplicationSubject is the subject of the replication certificate, as the server writes it.
const ReplicationSubject = "/CN=cnmsql-replication"

// PKI is a certificate authority with its file.
type PKI struct {
	// CA is the path of its certificate.
	CA string

	dir      string
	cert     *x509.Certificate
	key      *ecdsa.PrivateKey
	next     int64
	validity time.Duration
}

// Pair is the paths of a certificate and its key.
type Pair struct{ Cert, Key string }

// NewPKI makes an authority.
func NewPKI(t testing.TB) *PKI {
	t.Helper()
	p := &PKI{dir: t.TempDir(), next: 1}
	p.key = newKey(t)
	template := p.template("test-ca")
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &p.key.PublicKey, p.key)
	check(t, err)
	p.cert, err = x509.ParseCertificate(der)
	check(t, err)
	p.CA = p.write(t, "ca.crt", "CERTIFICATE", der)
	return p
}

// Issue makes a certificate for 127.0.0.1 and localhost, for both sides of a connection.
func (p *PKI) Issue(t testing.TB, commonName string) Pair {
	t.Helper()
	key := newKey(t)
	template := p.template(commonName)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = []string{"localhost", commonName}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	der, err := x509.CreateCertificate(rand.Reader, template, p.cert, &key.PublicKey, p.key)
	check(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	check(t, err)
	return Pair{
		Cert: p.write(t, commonName+".crt", "CERTIFICATE", der),
		Key:  p.write(t, commonName+".key", "PRIVATE KEY", private),
	}
}

func (p *PKI) template(commonName string) *x509.Certificate {
	p.next++
	return &x509.Certificate{
		SerialNumber: big.NewInt(p.next),
		Subject:      pkix.Name{CommonName: commonName},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(cmp.Or(p.validity, 24*time.Hour)),
	}
}

func (p *PKI) write(t testing.TB, name, kind string, der []byte) string {
	t.Helper()
	path := filepath.Join(p.dir, name)
	check(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return path
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Renew replaces a certificate that was issued, with another end of validity.
func (p *PKI) Renew(t testing.TB, commonName string, validity time.Duration) Pair {
	t.Helper()
	p.validity = validity
	defer func() { p.validity = 0 }()
	return p.Issue(t, commonName)
}

// Spoil makes the file of a certificate unreadable for the server.
func (p *PKI) Spoil(t testing.TB, commonName string) {
	t.Helper()
	check(t, os.WriteFile(filepath.Join(p.dir, commonName+".crt"), []byte("no certificate"), 0o600))
}
