package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/plugin/view"
)

// world is an API server with Clusters, seen by a person who works in namespace a.
type world struct {
	t      *testing.T
	client client.WithWatch
	funcs  interceptor.Funcs
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(api.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	return &world{t: t, client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&api.Cluster{}).Build()}
}

func cluster(namespace, name string) *api.Cluster {
	return &api.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "uid-" + "c1"},
		Spec:       api.ClusterSpec{Instances: 3},
		Status: api.ClusterStatus{
			Phase: api.PhaseReady, InstanceNames: []string{name + "-1", name + "-2", name + "-3"},
			CurrentPrimary: name + "-1", TargetPrimary: name + "-1", CurrentPrimaryGeneration: 1,
		},
	}
}

// call runs the plugin and returns what it printed.
func (w *world) call(args ...string) (string, error) {
	w.t.Helper()
	var out bytes.Buffer
	o := Options{Version: "v9", Out: &out, Err: &out, Now: time.Now, Connect: func() (client.WithWatch, string, error) {
		return interceptor.NewClient(w.client, w.funcs), "a", nil
	}}
	c := New(o)
	c.SetArgs(args)
	err := c.ExecuteContext(context.Background())
	return out.String(), err
}

func (w *world) get(name string) *api.Cluster {
	w.t.Helper()
	c := &api.Cluster{}
	if err := w.client.Get(context.Background(), client.ObjectKey{Namespace: "a", Name: name}, c); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// operator answers the first request for a switchover as decide says.
func (w *world) operator(name string, decide func(*api.Cluster)) {
	w.funcs.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		if err := c.SubResource(sub).Patch(ctx, o, p, opts...); err != nil {
			return err
		}
		go func() {
			now := w.get(name)
			decide(now)
			if err := w.client.Status().Update(context.Background(), now); err != nil {
				w.t.Error(err)
			}
		}()
		return nil
	}
}

func TestPromoteAsksForTheInstanceByNameOrNumber(t *testing.T) {
	for _, args := range [][]string{{"promote", "c1", "c1-2"}, {"promote", "c1", "2"}, {"promote", "2"}, {"promote", "c1-2"}} {
		w := newWorld(t, cluster("a", "c1"), cluster("b", "c1"))
		out, err := w.call(args...)
		if err != nil || !strings.Contains(out, "asked for c1-2") {
			t.Errorf("%v: %q, %v", args, out, err)
		}
		if got := w.get("c1").Status.TargetPrimary; got != "c1-2" {
			t.Errorf("%v: target %q", args, got)
		}
	}
}

func TestPromoteOfThePrimaryDoesNothing(t *testing.T) {
	w := newWorld(t, cluster("a", "c1"))
	before := w.get("c1").ResourceVersion
	out, err := w.call("promote", "c1", "c1-1", "--wait")
	if err != nil || !strings.Contains(out, "nothing to do") {
		t.Errorf("%q, %v", out, err)
	}
	if w.get("c1").ResourceVersion != before {
		t.Error("something was written")
	}
}

func TestPromoteWhoseAnswerWasLostLooksWhetherItWasStored(t *testing.T) {
	for _, stores := range []bool{true, false} {
		w := newWorld(t, cluster("a", "c1"))
		w.funcs.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if stores {
				if err := c.SubResource(sub).Patch(ctx, o, p, opts...); err != nil {
					return err
				}
			}
			return apierrors.NewTimeoutError("the server took too long", 1)
		}
		out, err := w.call("promote", "c1", "c1-2")
		if stores && (err != nil || !strings.Contains(out, "asked for c1-2")) || !stores && (!apierrors.IsTimeout(err) || out != "") {
			t.Errorf("stored %t: %q, %v", stores, out, err)
		}
	}
}

func TestPromoteOfThePresentPrimaryCancelsWhatWasAskedFor(t *testing.T) {
	c := cluster("a", "c1")
	c.Status.TargetPrimary = "c1-3"
	w := newWorld(t, c)
	if out, err := w.call("promote", "c1", "c1-1"); err != nil || strings.Contains(out, "nothing to do") {
		t.Errorf("%q, %v", out, err)
	}
	if got := w.get("c1").Status.TargetPrimary; got != "c1-1" {
		t.Errorf("target %q", got)
	}
}

func TestWrongNamesFailAndListWhatExists(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"promote", "c1", "c1-9"}, "c1-1, c1-2, c1-3"},
		{[]string{"promote", "c1", "9"}, "c1-1, c1-2, c1-3"},
		{[]string{"promote", "c1", "c2-1"}, "c1-1, c1-2, c1-3"},
		{[]string{"promote", "nope", "c1-2"}, `namespace "a" has: c1, other`},
		{[]string{"promote", "2"}, "which Cluster?"},
		{[]string{"status", "nope"}, `namespace "a" has: c1, other`},
		{[]string{"status"}, "c1, other"},
		{[]string{"status", "c1", "-o", "wide"}, "json or yaml"},
	} {
		w := newWorld(t, cluster("a", "c1"), cluster("a", "other"))
		out, err := w.call(c.args...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %q, %v; want an error with %q", c.args, out, err, c.want)
		}
		if got := w.get("c1").Status.TargetPrimary; got != "c1-1" {
			t.Errorf("%v: target %q", c.args, got)
		}
	}
}

func TestPromoteTriesAgainAfterAConflict(t *testing.T) {
	w := newWorld(t, cluster("a", "c1"))
	calls := 0
	w.funcs.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		if calls++; calls == 1 {
			return apierrors.NewConflict(schema.GroupResource{Resource: "clusters"}, o.GetName(), errors.New("stale"))
		}
		return c.SubResource(sub).Patch(ctx, o, p, opts...)
	}
	if out, err := w.call("promote", "c1", "2"); err != nil || calls != 2 {
		t.Errorf("%q, %v, %d calls", out, err, calls)
	}
}

func TestPromoteWaitsUntilItIsDone(t *testing.T) {
	w := newWorld(t, cluster("a", "c1"))
	w.operator("c1", func(c *api.Cluster) { c.Status.CurrentPrimary, c.Status.CurrentPrimaryGeneration = "c1-2", 2 })
	out, err := w.call("promote", "c1", "2", "--wait")
	if err != nil || !strings.Contains(out, "c1-2 is the primary of c1 after") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestPromoteTellsWhyItWasRefused(t *testing.T) {
	event := &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "a", Name: "e"},
		InvolvedObject: corev1.ObjectReference{UID: "uid-c1"},
		Reason:         api.EventSwitchoverRefused, Message: "c1-2 cannot become the primary: it does not have its data yet",
		EventTime: metav1.NewMicroTime(time.Now().Add(time.Minute)),
	}
	w := newWorld(t, cluster("a", "c1"), event)
	w.operator("c1", func(c *api.Cluster) { c.Status.TargetPrimary = "c1-1" })
	out, err := w.call("promote", "c1", "2", "--wait")
	if err == nil || !strings.Contains(err.Error(), "does not have its data yet") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestPromoteThatRunsOutOfTimeSaysHowItStands(t *testing.T) {
	w := newWorld(t, cluster("a", "c1"))
	out, err := w.call("promote", "c1", "2", "--wait", "--timeout", "50ms")
	if err == nil || !strings.Contains(err.Error(), "goes on: the primary is c1-1, wanted is c1-2") {
		t.Errorf("%q, %v", out, err)
	}
}

// A change that the watch never told of is seen by the reading after the time-out.
func TestPromoteReadsOnceMoreWhenTimeIsUp(t *testing.T) {
	w := newWorld(t, cluster("a", "c1"))
	reads := 0
	w.funcs.Get = func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		reads++
		if err := c.Get(ctx, key, o, opts...); err != nil {
			return err
		}
		if seen, ok := o.(*api.Cluster); ok && reads > 2 {
			seen.Status.CurrentPrimary, seen.Status.CurrentPrimaryGeneration = "c1-2", 2
		}
		return nil
	}
	out, err := w.call("promote", "c1", "2", "--wait", "--timeout", "50ms")
	if err != nil || !strings.Contains(out, "c1-2 is the primary") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestStatusWorksWithoutTheRightToReadPods(t *testing.T) {
	w := newWorld(t, cluster("a", "c1"))
	w.funcs.List = func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*corev1.PodList); ok {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
		}
		return c.List(ctx, list, opts...)
	}
	out, err := w.call("status")
	if err != nil || !strings.Contains(out, "the Pods cannot be read") || !strings.Contains(out, "unknown of 3 ready") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestStatusShowsOnlyItsOwnNamespace(t *testing.T) {
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "c1-1", Labels: map[string]string{api.LabelCluster: "c1", api.LabelInstance: "c1-1"}}}
	w := newWorld(t, cluster("a", "c1"), cluster("b", "c1"), foreign)
	out, err := w.call("status", "c1", "-o", "json")
	if err != nil {
		t.Fatal(err)
	}
	var s view.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	if s.Namespace != "a" || s.Instances[0].Pod != "missing" {
		t.Errorf("namespace %s, instance %+v", s.Namespace, s.Instances[0])
	}
}

func TestStatusAsYAML(t *testing.T) {
	out, err := newWorld(t, cluster("a", "c1")).call("status", "-o", "yaml")
	if err != nil || !strings.Contains(out, "cluster: c1\n") {
		t.Errorf("%q, %v", out, err)
	}
}

func TestVersion(t *testing.T) {
	out, err := newWorld(t).call("version")
	if err != nil || out != "kubectl-cnmsql v9, API mysql.cnmsql.co/v1alpha1\n" {
		t.Errorf("%q, %v", out, err)
	}
}
