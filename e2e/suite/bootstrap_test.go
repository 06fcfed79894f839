package suite

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	api "cnmsql.co/operator/api/v1alpha1"
)

// The first instance is initialised, each further one is cloned from the primary once all before are well.
func TestInstancesComeOneAfterTheOther(t *testing.T) {
	e, key := shared(t)
	if g := status(t, e, key).Status.CurrentPrimaryGeneration; g > 1 {
		t.Skipf("the shared Cluster is in generation %d: this test must be the first to use it", g)
	}
	pods, err := e.Pods(t.Context(), key)
	must(t, err)
	if len(pods) != 3 {
		t.Fatalf("%d Pods", len(pods))
	}
	if why := early(key.Name); why != "" {
		t.Error(why)
	}
	c := status(t, e, key)
	if c.Status.CurrentPrimary != "c1-1" || c.Status.CurrentPrimaryGeneration != 1 || c.Status.EstablishedAt == nil {
		t.Errorf("primary %s, generation %d, established %v", c.Status.CurrentPrimary, c.Status.CurrentPrimaryGeneration, c.Status.EstablishedAt)
	}
	for _, kind := range []string{
		api.ConditionReady, api.ConditionSpecValid, api.ConditionCredentialsReady, api.ConditionCertificatesReady,
		api.ConditionServicesReady, api.ConditionLeaseReady, api.ConditionSemiSyncReady, api.ConditionUpToDate,
	} {
		if !meta.IsStatusConditionTrue(c.Status.Conditions, kind) {
			t.Errorf("condition %s: %+v", kind, meta.FindStatusCondition(c.Status.Conditions, kind))
		}
	}
}

// Every instance has its own server_id and server_uuid, and none but the primary can be written to.
func TestReplicasAreReadOnlyServersOfTheirOwn(t *testing.T) {
	e, key := shared(t)
	db, err := e.Database(t.Context(), key)
	must(t, err)
	c := status(t, e, key)
	uuids := map[string]string{}
	for _, name := range c.Status.InstanceNames {
		server, err := db.Open(name)
		must(t, err)
		var id, uuid string
		var readOnly bool
		must(t, server.QueryRowContext(t.Context(), "SELECT @@server_id, @@server_uuid, @@super_read_only").Scan(&id, &uuid, &readOnly))
		if other, taken := uuids[uuid]; taken {
			t.Errorf("%s and %s are both %s", name, other, uuid)
		}
		uuids[uuid] = name
		if ordinal, _ := c.InstanceOrdinal(name); id != fmt.Sprint(ordinal) {
			t.Errorf("%s has server_id %s", name, id)
		}
		if readOnly == (name == c.Status.CurrentPrimary) {
			t.Errorf("%s: super_read_only %t; the primary is %s", name, readOnly, c.Status.CurrentPrimary)
		}
		must(t, server.Close())
	}
}
