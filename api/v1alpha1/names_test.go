package v1alpha1_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	api "cnmsql.co/operator/api/v1alpha1"
)

func TestInstanceOrdinalIsTheInverseOfInstanceName(t *testing.T) {
	c := minimal()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int32Min(1).Draw(t, "n")
		if got, ok := c.InstanceOrdinal(c.InstanceName(n)); !ok || got != n {
			t.Fatalf("%d became %d, %v", n, got, ok)
		}
		name := c.Name + "-" + rapid.StringMatching(`[-+0-9a ]{0,12}`).Draw(t, "suffix")
		if got, ok := c.InstanceOrdinal(name); ok && c.InstanceName(got) != name {
			t.Fatalf("%q and %q are both instance %d", name, c.InstanceName(got), got)
		}
	})
}

func TestWhatIsNoInstanceOfThisClusterHasNoOrdinal(t *testing.T) {
	c := minimal()
	for _, name := range []string{"", "c1", "c1-", "c1-0", "c1-01", "c1-+1", "c1--1", "c1-1x", "c1-x", "c1-2147483648", "c2-1", "c1-a-1", "c11", "xc1-1"} {
		if n, ok := c.InstanceOrdinal(name); ok {
			t.Errorf("%q is instance %d", name, n)
		}
	}
}

func TestNamesOfTheLongestClusterFit(t *testing.T) {
	c := minimal()
	c.Name = strings.Repeat("a", api.MaxClusterNameLength)
	last := c.InstanceName(9999)
	for _, name := range []string{
		last, api.BinlogPVCName(c.InstanceName(999)), api.InstanceServiceAccountName(c.InstanceName(999)), api.ServerTLSSecretName(c.InstanceName(999)),
		c.ServiceName("rw"), c.ServiceName("ro"), c.ServiceName("r"), c.LeaseName(), c.CASecretName(), c.ReplicationTLSSecretName(),
		c.ClientTLSSecretName(), c.RootSecretName(), c.AppSecretName(), c.ControlSecretName(), c.ReplicationSecretName(),
	} {
		if problems := validation.IsDNS1035Label(name); len(problems) > 0 {
			t.Errorf("%s (%d characters): %v", name, len(name), problems)
		}
	}
}

func TestSecretsThatAPersonNamesReplaceTheGeneratedOnes(t *testing.T) {
	c := minimal()
	if c.RootSecretName() != "c1-root" || c.AppSecretName() != "c1-app" {
		t.Errorf("%s, %s", c.RootSecretName(), c.AppSecretName())
	}
	c.Spec.RootPasswordSecret = &corev1.LocalObjectReference{Name: "r"}
	c.Default()
	c.Spec.Bootstrap.InitDB.Secret = &corev1.LocalObjectReference{Name: "a"}
	if c.RootSecretName() != "r" || c.AppSecretName() != "a" {
		t.Errorf("%s, %s", c.RootSecretName(), c.AppSecretName())
	}
}

func TestHolderNamesItsInstance(t *testing.T) {
	if got := api.HolderInstance(api.LeaseHolder("c1-2", "uid")); got != "c1-2" {
		t.Errorf("instance %q", got)
	}
	if got := api.HolderInstance(""); got != "" {
		t.Errorf("instance %q of nobody", got)
	}
}
