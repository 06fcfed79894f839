package topology

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
)

// deaf is a client to whose writes of a status the API server does not listen.
type deaf struct {
	client.Client
	err error
}

func (d deaf) Status() client.SubResourceWriter { return deafStatus{d.Client.Status(), d.err} }

type deafStatus struct {
	client.SubResourceWriter
	err error
}

func (d deafStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return d.err
}

func (b *bench) annotations() map[string]string {
	b.t.Helper()
	c := &api.Cluster{}
	if err := b.Live.Get(b.t.Context(), shop, c); err != nil {
		b.t.Fatal(err)
	}
	return c.Annotations
}

func recording() core.Action {
	return core.Action{Kind: core.RecordFailover, Instance: "c1", Record: &core.FailoverRecord{At: start, Target: "c1-2", Generation: 4}}
}

func TestTheLastFailoverIsWrittenIntoTheAnnotationsInOnePatch(t *testing.T) {
	c := aCluster()
	c.Annotations = map[string]string{"mine": "stays"}
	b := newBench(t, c)
	b.does("new", recording())
	b.must()
	b.wrote("patch status *v1alpha1.Cluster c1", "patch *v1alpha1.Cluster c1")
	want := map[string]string{
		"mine": "stays", api.AnnotationLastFailover: start.UTC().Format(time.RFC3339), api.AnnotationLastFailoverTarget: "c1-2", api.AnnotationLastFailoverGeneration: "4",
	}
	if got := b.annotations(); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	b.does("", core.Action{Kind: core.RecordFailover, Instance: "c1"})
	b.must()
	if got := b.annotations(); len(got) != 1 {
		t.Errorf("not removed: %v", got)
	}
}

func TestTheSecondCopyOfTheHistoryIsWrittenAlsoWhenTheFirstCannotBe(t *testing.T) {
	b := newBench(t, aCluster(), aPod("c1-1"))
	b.does("new", core.Action{Kind: core.DeletePod, Instance: "c1-1", PodUID: "pod-c1-1"}, recording())
	b.r.Client = deaf{b.Server, errors.New("a webhook is down")}
	if _, err := b.reconcile(); err == nil {
		t.Error("the failure is not told")
	}
	b.wrote("patch *v1alpha1.Cluster c1")
	if len(b.annotations()) != 3 {
		t.Errorf("annotations %v", b.annotations())
	}
	// What was decided on a Cluster that has changed is not written anywhere.
	b.r.Client = deaf{b.Server, apierrors.NewConflict(schema.GroupResource{Resource: "clusters"}, "c1", errors.New("changed"))}
	b.must()
	b.wrote()
}

func TestAnAcceptedLossIsRemovedOnlyIfItIsTheOneThatWasAnswered(t *testing.T) {
	for _, tc := range []struct {
		there, answered string
		stays           bool
	}{{"c1-2=", "c1-2=", false}, {"c1-3=", "c1-2=", true}} {
		c := aCluster()
		c.Annotations = map[string]string{api.AnnotationAcceptLoss: tc.there, "mine": "stays"}
		b := newBench(t, c)
		b.does("", core.Action{Kind: core.ClearAcceptLoss, Instance: "c1", Value: tc.answered})
		if _, err := b.reconcile(); (err != nil) && !tc.stays {
			t.Error(err)
		}
		got := b.annotations()
		if _, there := got[api.AnnotationAcceptLoss]; there != tc.stays || got["mine"] != "stays" {
			t.Errorf("%q answered, of %q there is %v", tc.answered, tc.there, got)
		}
	}
}
