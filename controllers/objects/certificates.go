package objects

import (
	"slices"
	"time"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	cmmeta "github.com/cert-manager/cert-manager/pkg/apis/meta/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// How long certificates are valid, and how long before the end they are renewed.
const (
	authorityDuration = 10 * 365 * 24 * time.Hour
	authorityRenewal  = 365 * 24 * time.Hour
	leafDuration      = 90 * 24 * time.Hour
	leafRenewal       = 30 * 24 * time.Hour
)

// Issuers are the one that signs the Cluster's own certificate authority, and that authority.
func Issuers(c *api.Cluster) []*cmv1.Issuer {
	selfSigned := &cmv1.Issuer{ObjectMeta: meta(c, selfSignedIssuer(c))}
	selfSigned.Spec.SelfSigned = &cmv1.SelfSignedIssuer{}
	authority := &cmv1.Issuer{ObjectMeta: meta(c, c.CASecretName())}
	authority.Spec.CA = &cmv1.CAIssuer{SecretName: c.CASecretName()}
	return []*cmv1.Issuer{selfSigned, authority}
}

func selfSignedIssuer(c *api.Cluster) string { return c.Name + "-selfsigned" }

// Certificates are all that the Cluster needs, each named as its Secret: the authority, the operator's, the
// replicas', and one for each instance.
func Certificates(c *api.Cluster, instances []string) []*cmv1.Certificate {
	list := []*cmv1.Certificate{authorityCertificate(c), clientCertificate(c), replicationCertificate(c)}
	for _, instance := range instances {
		list = append(list, serverCertificate(c, instance))
	}
	return list
}

// authorityCertificate keeps its key when it is renewed, so that certificates issued before stay valid.
func authorityCertificate(c *api.Cluster) *cmv1.Certificate {
	cert := certificateOf(c, meta(c, c.CASecretName()), c.Name+" certificate authority")
	cert.Spec.IsCA = true
	cert.Spec.IssuerRef.Name = selfSignedIssuer(c)
	cert.Spec.Duration = &metav1.Duration{Duration: authorityDuration}
	cert.Spec.RenewBefore = &metav1.Duration{Duration: authorityRenewal}
	cert.Spec.PrivateKey.RotationPolicy = cmv1.RotationPolicyNever
	cert.Spec.Usages = []cmv1.KeyUsage{cmv1.UsageDigitalSignature, cmv1.UsageCertSign, cmv1.UsageCRLSign}
	return cert
}

func clientCertificate(c *api.Cluster) *cmv1.Certificate {
	cert := certificateOf(c, meta(c, c.ClientTLSSecretName()), api.SubjectControl)
	cert.Spec.Usages = []cmv1.KeyUsage{cmv1.UsageDigitalSignature, cmv1.UsageClientAuth}
	return cert
}

func replicationCertificate(c *api.Cluster) *cmv1.Certificate {
	cert := certificateOf(c, meta(c, c.ReplicationTLSSecretName()), api.SubjectReplication)
	cert.Spec.Usages = []cmv1.KeyUsage{cmv1.UsageDigitalSignature, cmv1.UsageClientAuth}
	return cert
}

// serverCertificate also proves an instance to its peers, hence both usages.
func serverCertificate(c *api.Cluster, instance string) *cmv1.Certificate {
	cert := certificateOf(c, instanceMeta(c, instance, api.ServerTLSSecretName(instance)), instance)
	cert.Spec.Usages = []cmv1.KeyUsage{cmv1.UsageDigitalSignature, cmv1.UsageServerAuth, cmv1.UsageClientAuth}
	cert.Spec.DNSNames = serverNames(c, instance)
	cert.Spec.IPAddresses = []string{"127.0.0.1"}
	return cert
}

// serverNames are the names under which clients may reach an instance: its own, those of the role Services,
// and the user's.
func serverNames(c *api.Cluster, instance string) []string {
	var names []string
	hosts := []string{instance, c.ServiceName("rw"), c.ServiceName("ro"), c.ServiceName("r")}
	for _, more := range c.AdditionalServices() {
		hosts = append(hosts, c.ServiceName(more.Name))
	}
	for _, host := range hosts {
		names = append(names, host, host+"."+c.Namespace, host+"."+c.Namespace+".svc", host+"."+c.Namespace+".svc.cluster.local")
	}
	names = append(names, "localhost")
	if c.Spec.Certificates != nil {
		for _, name := range c.Spec.Certificates.ServerAltDNSNames {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func certificateOf(c *api.Cluster, m metav1.ObjectMeta, commonName string) *cmv1.Certificate {
	cert := &cmv1.Certificate{ObjectMeta: m}
	cert.Spec = cmv1.CertificateSpec{
		CommonName:  truncate(commonName, 64),
		SecretName:  m.Name,
		Duration:    &metav1.Duration{Duration: leafDuration},
		RenewBefore: &metav1.Duration{Duration: leafRenewal},
		IssuerRef:   cmmeta.IssuerReference{Name: c.CASecretName(), Kind: cmv1.IssuerKind, Group: "cert-manager.io"},
		PrivateKey: &cmv1.CertificatePrivateKey{
			Algorithm: cmv1.ECDSAKeyAlgorithm, Size: 256, Encoding: cmv1.PKCS8, RotationPolicy: cmv1.RotationPolicyAlways,
		},
		SecretTemplate: &cmv1.CertificateSecretTemplate{Labels: secretLabels(m.Labels)},
	}
	return cert
}

// secretLabels are ours alone: inherited metadata is on the Certificate.
func secretLabels(labels map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range []string{LabelManagedBy, api.LabelCluster, api.LabelInstance} {
		if value, ok := labels[key]; ok {
			out[key] = value
		}
	}
	return out
}

// truncate keeps a common name within what X.509 allows.
func truncate(s string, n int) string { return s[:min(len(s), n)] }
