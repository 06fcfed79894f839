package suite

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/e2e/framework"
)

// What `make e2e` tells the suite.
const (
	labVariable     = "CNMSQL_LAB"              // path of e2e/lab/lab
	archiveVariable = "CNMSQL_OPERATOR_ARCHIVE" // the operator's image
	binVariable     = "CNMSQL_BIN"              // folder with kubectl and the plugin
)

// namespace is where everything of the suite lives. It is made anew for each run.
const namespace = "e2e"

// readyWithin is how long a Cluster may take to become Ready.
const readyWithin = 6 * time.Minute

// setUp connects, installs the operator and makes the namespace, once.
var setUp = sync.OnceValues(func() (*framework.Environment, error) {
	ctx := context.Background()
	e, err := framework.Open(ctx, framework.Lab{Script: os.Getenv(labVariable)}, os.Getenv(binVariable))
	if err != nil {
		return nil, err
	}
	if err := e.Install(ctx, os.Getenv(archiveVariable)); err != nil {
		return nil, fmt.Errorf("installing the operator: %w", err)
	}
	if err := e.FreshNamespace(ctx, namespace, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}); err != nil {
		return nil, err
	}
	return e, watchPrimaries(e)
})

// environment is the lab; the test is skipped when there is none.
func environment(t *testing.T) *framework.Environment {
	t.Helper()
	if os.Getenv(labVariable) == "" {
		t.Skipf("no lab: %s is not set; make e2e sets it", labVariable)
	}
	e, err := setUp()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, v := range violations() {
			t.Errorf("two primaries: %s", v)
		}
	})
	return e
}

// newCluster is a small Cluster in the namespace of the suite.
func newCluster(name string, instances int32) *api.Cluster {
	return framework.SmallCluster(client.ObjectKey{Namespace: namespace, Name: name}, instances)
}

// create makes a Cluster that is deleted at the end of the test.
func create(t *testing.T, e *framework.Environment, c *api.Cluster) client.ObjectKey {
	t.Helper()
	if err := e.Client.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, e, client.ObjectKeyFromObject(c)) })
	return client.ObjectKeyFromObject(c)
}

// remove deletes a Cluster and waits until its Pods are gone: they take room.
func remove(t *testing.T, e *framework.Environment, key client.ObjectKey) {
	ctx := context.Background()
	c := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := client.IgnoreNotFound(e.Client.Delete(ctx, c)); err != nil {
		t.Error(err)
	}
	err := framework.Await(ctx, "the Pods of "+key.String()+" to go", 2*time.Minute, func(ctx context.Context) (bool, string, error) {
		pods, err := e.Pods(ctx, key)
		return len(pods) == 0, fmt.Sprintf("%d Pods", len(pods)), err
	})
	if err != nil {
		t.Error(err)
	}
}

// shared is the Cluster of three that most tests use, Ready; it is made by the first of them.
func shared(t *testing.T) (*framework.Environment, client.ObjectKey) {
	t.Helper()
	e := environment(t)
	c := newCluster("c1", 3)
	if err := e.Client.Create(t.Context(), c); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	key := client.ObjectKeyFromObject(c)
	ready(t, e, key)
	return e, key
}

// ready waits until a Cluster is.
func ready(t *testing.T, e *framework.Environment, key client.ObjectKey) {
	t.Helper()
	if err := e.AwaitReady(t.Context(), key, readyWithin, nil); err != nil {
		if out, statusErr := e.Plugin(context.Background(), key.Namespace, "status", key.Name); statusErr == nil {
			t.Log(out)
		}
		t.Fatal(err)
	}
}

// status reads a Cluster.
func status(t *testing.T, e *framework.Environment, key client.ObjectKey) *api.Cluster {
	t.Helper()
	c, err := e.Cluster(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// must stops the test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// replica is an instance that is not the primary.
func replica(t *testing.T, e *framework.Environment, key client.ObjectKey) string {
	t.Helper()
	c := status(t, e, key)
	for _, name := range c.Status.InstanceNames {
		if name != c.Status.CurrentPrimary {
			return name
		}
	}
	t.Fatal("there is no replica")
	return ""
}

func named(key client.ObjectKey, name string) client.ObjectKey {
	return client.ObjectKey{Namespace: key.Namespace, Name: name}
}
