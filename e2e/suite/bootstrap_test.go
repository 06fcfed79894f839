package suite

import (
	"context"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/e2e/framework"
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

// A commit that waits for a replica's acknowledgement would keep the replica from being cloned.
func waitingCommitsHoldNothingUp(t *testing.T) {
	e := environment(t)
	key := create(t, e, newCluster("early", 2))
	if t.Run("of an application that writes from the first moment on", func(t *testing.T) { earlyApplicationHoldsNothingUp(t, e, key) }) {
		t.Run("when the only replica is made anew", func(t *testing.T) { theOnlyReplicaIsMadeAnewUnderWrites(t, e, key) })
	}
}

// An application that tries to write from the first moment on does not keep the replicas of a new Cluster from being made.
func earlyApplicationHoldsNothingUp(t *testing.T, e *framework.Environment, key client.ObjectKey) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			tryToWrite(ctx, e, key)
			select {
			case <-ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	ready(t, e, key)
	stop()
	<-done
	db, err := e.Database(t.Context(), key)
	must(t, err)
	rw, err := db.Service("rw")
	must(t, err)
	defer rw.Close()
	NewWithT(t).Eventually(func() error {
		_, err := rw.ExecContext(t.Context(), "CREATE TABLE IF NOT EXISTS early (id INT)")
		return err
	}, "20s", "200ms").Should(Succeed())
}

func tryToWrite(ctx context.Context, e *framework.Environment, key client.ObjectKey) {
	db, err := e.Database(ctx, key)
	if err != nil {
		return
	}
	rw, err := db.Service("rw")
	if err != nil {
		return
	}
	defer rw.Close()
	_, _ = rw.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS early (id INT)")
}
