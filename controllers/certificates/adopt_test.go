package certificates

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestIssuedSecretsGoWithTheCluster(t *testing.T) {
	ours := map[string]string{api.LabelCluster: "c1"}
	earlier := secret("c1-client-tls", ours)
	earlier.OwnerReferences = []metav1.OwnerReference{{APIVersion: "mysql.cnmsql.co/v1alpha1", Kind: "Cluster", Name: "c1", UID: "uid-of-an-earlier-c1"}}
	b := newBench(t, secret("c1-ca", ours), secret("c1-1-server-tls", nil), earlier)
	b.reconcile(t)
	if got := b.owners(t, "c1-ca"); len(got) != 0 {
		t.Errorf("owned before it was issued: %v", got)
	}
	b.issue(t)
	b.reconcile(t)
	if got := b.owners(t, "c1-ca"); len(got) != 1 || got[0].UID != "uid-of-c1" || got[0].Controller != nil {
		t.Errorf("owners of the authority: %v", got)
	}
	if got := b.owners(t, "c1-client-tls"); len(got) != 2 || got[1].UID != "uid-of-c1" {
		t.Errorf("owners of a Secret that was left by an earlier Cluster: %v", got)
	}
	if got := b.owners(t, "c1-1-server-tls"); len(got) != 0 {
		t.Errorf("a Secret without our label was taken: %v", got)
	}
	b.Taken()
	b.reconcile(t)
	if writes := b.Taken(); len(writes) > 0 {
		t.Errorf("writes in steady state: %v", writes)
	}
}
