package certificates

import (
	"testing"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

func secret(name string, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}}
}

func (b *bench) owners(t *testing.T, name string) []metav1.OwnerReference {
	t.Helper()
	s := &corev1.Secret{}
	if err := b.Live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: name}, s); err != nil {
		t.Fatal(err)
	}
	return s.OwnerReferences
}

// identify gives the Certificates what an API server gives them: a UID each.
func (b *bench) identify(t *testing.T) {
	t.Helper()
	for _, c := range b.certificates(t) {
		c.UID = types.UID("uid-of-" + c.Name)
		if err := b.Update(t.Context(), &c); err != nil {
			t.Fatal(err)
		}
	}
}

func TestIssuedSecretsGoWithTheClusterAndThoseOfInstancesWithTheirCertificate(t *testing.T) {
	ours := map[string]string{api.LabelCluster: "c1"}
	earlier := secret("c1-client-tls", ours)
	earlier.OwnerReferences = []metav1.OwnerReference{{APIVersion: "mysql.cnmsql.co/v1alpha1", Kind: "Cluster", Name: "c1", UID: "uid-of-an-earlier-c1"}}
	taken := secret("c1-2-server-tls", ours) // as an earlier operator left it
	taken.OwnerReferences = []metav1.OwnerReference{{APIVersion: "mysql.cnmsql.co/v1alpha1", Kind: "Cluster", Name: "c1", UID: "uid-of-c1"}}
	b := newBench(t, secret("c1-ca", ours), secret("c1-1-server-tls", ours), secret("c1-replication-tls", nil), earlier, taken)
	b.reconcile(t)
	if got := b.owners(t, "c1-ca"); len(got) != 0 {
		t.Errorf("owned before it was issued: %v", got)
	}
	b.identify(t)
	b.issue(t)
	b.Hide("c1-1-server-tls") // the cache is behind
	b.reconcile(t)
	if got := b.owners(t, "c1-ca"); len(got) != 1 || got[0].UID != "uid-of-c1" || got[0].Controller != nil {
		t.Errorf("owners of the authority: %v", got)
	}
	if got := b.owners(t, "c1-client-tls"); len(got) != 2 || got[1].UID != "uid-of-c1" {
		t.Errorf("owners of a Secret that was left by an earlier Cluster: %v", got)
	}
	for _, name := range []string{"c1-1-server-tls", "c1-2-server-tls"} {
		want := []metav1.OwnerReference{{APIVersion: "cert-manager.io/v1", Kind: "Certificate", Name: name, UID: types.UID("uid-of-" + name)}}
		if diff := cmp.Diff(want, b.owners(t, name)); diff != "" {
			t.Errorf("owners of an instance's Secret %s: %s", name, diff)
		}
	}
	if got := b.owners(t, "c1-replication-tls"); len(got) != 0 {
		t.Errorf("a Secret without our label was taken: %v", got)
	}
	b.Hide()
	b.reconcile(t)
	b.Taken()
	b.reconcile(t)
	if writes := b.Taken(); len(writes) > 0 {
		t.Errorf("writes in steady state: %v", writes)
	}
}

func TestCertificateOfARemovedInstanceGoesAfterItsSecretWasTied(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1-2"}}
	b := newBench(t, pod)
	b.reconcile(t)
	b.identify(t)
	b.issue(t)
	c := b.cluster(t)
	c.Spec.Instances = 1
	if err := b.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	c.Status.InstanceNames, c.Status.LatestGeneratedNode, c.Status.CurrentPrimary = []string{"c1-1"}, 2, "c1-1"
	if err := b.Status().Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	b.reconcile(t)
	if n := len(b.certificates(t)); n != 5 {
		t.Errorf("%d Certificates while the Pod stops", n)
	}
	if err := b.Create(t.Context(), secret("c1-2-server-tls", map[string]string{api.LabelCluster: "c1"})); err != nil {
		t.Fatal(err)
	}
	if err := b.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	b.Taken()
	b.reconcile(t)
	want := []string{"patch *v1.Secret c1-2-server-tls", "delete *v1.Certificate c1-2-server-tls"}
	if diff := cmp.Diff(want, b.Taken()); diff != "" {
		t.Errorf("writes once it is gone: %s", diff)
	}
	if got := b.cluster(t).Status.Certificates.Expirations; len(got) != 4 {
		t.Errorf("expirations %v", got)
	}
	b.reconcile(t)
	if writes := b.Taken(); len(writes) > 0 {
		t.Errorf("writes in steady state: %v", writes)
	}
}

func TestSecretOfACertificateThatIsNotOursIsNotTaken(t *testing.T) {
	foreign := &cmv1.Certificate{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "mine", UID: "uid-of-mine", Labels: map[string]string{api.LabelCluster: "c1", api.LabelInstance: "c1-1"},
	}}
	foreign.Spec.SecretName = "mine"
	b := newBench(t, foreign, secret("mine", map[string]string{api.LabelCluster: "c1"}))
	b.issue(t)
	b.reconcile(t)
	if got := b.owners(t, "mine"); len(got) != 0 {
		t.Errorf("owners %v", got)
	}
}
