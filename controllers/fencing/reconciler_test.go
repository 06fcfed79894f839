package fencing

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/fakeapi"
)

var key = client.ObjectKey{Namespace: "shop", Name: "c1"}

type bench struct {
	*fakeapi.Server
	r      *Reconciler
	events *events.FakeRecorder
}

func aCluster(annotation string) *api.Cluster {
	c := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1", UID: "uid-of-c1"}}
	if annotation != "" {
		c.Annotations = map[string]string{api.AnnotationFencing: annotation}
	}
	c.Status.InstanceNames, c.Status.CurrentPrimary = []string{"c1-1", "c1-2", "c1-3"}, "c1-1"
	return c
}

func aPod(name, request string, owner *api.Cluster) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid-of-pod", Labels: owner.Selector(), Annotations: map[string]string{api.AnnotationFencing: request}}}
	p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, api.GroupVersion.WithKind("Cluster"))}
	return p
}

func newBench(t *testing.T, existing ...client.Object) *bench {
	t.Helper()
	s := fakeapi.New(t, existing...)
	recorder := events.NewFakeRecorder(20)
	return &bench{s, &Reconciler{Client: s, Events: recorder}, recorder}
}

func (b *bench) reconcile(t *testing.T) {
	t.Helper()
	if _, err := b.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) cluster(t *testing.T) *api.Cluster {
	t.Helper()
	c := &api.Cluster{}
	if err := b.Live.Get(t.Context(), key, c); err != nil {
		t.Fatal(err)
	}
	return c
}

func (b *bench) told() (all []string) {
	for len(b.events.Events) > 0 {
		all = append(all, <-b.events.Events)
	}
	return all
}

func TestWhatTheAnnotationNamesIsFenced(t *testing.T) {
	for _, tc := range []struct {
		name, annotation string
		fenced           []string
		reason, message  string
	}{
		{"nothing", "", nil, api.ReasonNoneFenced, "no instance is fenced"},
		{"one", "c1-2", []string{"c1-2"}, api.ReasonFenced, "fenced: c1-2 (kubectl cnmsql fence off ends that)"},
		{"several, as people write them", " c1-3,c1-1 ,, c1-3", []string{"c1-1", "c1-3"}, api.ReasonFenced, "fenced: c1-1, c1-3 (kubectl cnmsql fence off ends that)"},
		{"one that does not exist", "c1-2,c1-9", []string{"c1-2"}, api.ReasonUnknownInstance,
			"fenced: c1-2 (kubectl cnmsql fence off ends that); the annotation mysql.cnmsql.co/fencing names c1-9, which is no instance: correct it (there are c1-1, c1-2, c1-3)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := newBench(t, aCluster(tc.annotation))
			b.reconcile(t)
			c := b.cluster(t)
			if !slices.Equal(c.Status.FencedInstances, tc.fenced) {
				t.Errorf("fenced %q", c.Status.FencedInstances)
			}
			ready := meta.FindStatusCondition(c.Status.Conditions, api.ConditionFencingReady)
			if ready == nil || ready.Reason != tc.reason || ready.Message != tc.message || (ready.Status == metav1.ConditionTrue) == (tc.reason == api.ReasonUnknownInstance) {
				t.Errorf("condition %+v", ready)
			}
			b.Taken()
			b.told()
			b.reconcile(t)
			if writes, told := b.Taken(), b.told(); len(writes)+len(told) > 0 {
				t.Errorf("a second pass writes %q and tells %q", writes, told)
			}
		})
	}
}

func TestEachFenceAndEachEndOfOneIsTold(t *testing.T) {
	c := aCluster("c1-1,c1-7")
	c.Status.FencedInstances = []string{"c1-3"}
	b := newBench(t, c)
	b.reconcile(t)
	want := []string{"Warning InstanceFenced c1-1 is fenced", "Normal InstanceUnfenced c1-3 is not fenced", "Warning FencingRefused fenced: c1-1 (kubectl cnmsql fence off ends that); the annotation"}
	told := b.told()
	if len(told) != len(want) {
		t.Fatalf("told %q", told)
	}
	for n := range want {
		if !strings.HasPrefix(told[n], want[n]) {
			t.Errorf("told %q, want %q", told[n], want[n])
		}
	}
}

// What somebody else wrote is removed, too, and told once.
func TestAStatusThatNobodyAskedForIsCorrected(t *testing.T) {
	c := aCluster("")
	c.Status.FencedInstances = []string{"c1-2"}
	b := newBench(t, c)
	b.reconcile(t)
	if got := b.cluster(t).Status.FencedInstances; len(got) > 0 || len(b.told()) != 1 {
		t.Errorf("fenced %q", got)
	}
	b.reconcile(t)
	if told := b.told(); len(told) > 0 {
		t.Errorf("told again: %q", told)
	}
}

// A restored Cluster has its annotations and no status: what was fenced must not start.
func TestAFenceOutlivesALostStatus(t *testing.T) {
	c := aCluster("c1-2,other-1")
	c.Status = api.ClusterStatus{}
	b := newBench(t, c)
	b.reconcile(t)
	if got := b.cluster(t).Status.FencedInstances; !slices.Equal(got, []string{"c1-2"}) {
		t.Errorf("fenced %q", got)
	}
}

// It has to outlive the Pod.
func TestARequestOnAPodIsMovedToTheCluster(t *testing.T) {
	c := aCluster("c1-3")
	b := newBench(t, c, aPod("c1-2", "true", c))
	b.reconcile(t)
	now := b.cluster(t)
	if got := now.Annotations[api.AnnotationFencing]; got != "c1-2,c1-3" {
		t.Errorf("annotation %q", got)
	}
	if want := []string{"c1-2", "c1-3"}; !slices.Equal(now.Status.FencedInstances, want) {
		t.Errorf("fenced %q", now.Status.FencedInstances)
	}
	pod := &corev1.Pod{}
	if err := b.Live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "c1-2"}, pod); err != nil || len(pod.Annotations) != 0 {
		t.Errorf("annotations of the Pod %v, %v", pod.Annotations, err)
	}
	// The Cluster comes first: a request that is in neither place would be lost.
	if diff := cmp.Diff([]string{"patch *v1alpha1.Cluster c1", "patch *v1.Pod c1-2", "patch status *v1alpha1.Cluster c1", "apply status *client.unstructuredApplyConfiguration c1"}, b.Taken()); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

func TestARequestOnAPodIsKeptUntilTheClusterHasIt(t *testing.T) {
	c := aCluster("")
	b := newBench(t, c, aPod("c1-2", "yes", c))
	b.Fail("c1", apierrors.NewServiceUnavailable("down"))
	if _, err := b.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err == nil {
		t.Fatal("no error")
	}
	pod := &corev1.Pod{}
	if err := b.Live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "c1-2"}, pod); err != nil || pod.Annotations[api.AnnotationFencing] == "" {
		t.Errorf("annotations of the Pod %v, %v", pod.Annotations, err)
	}
}

// Others write to the Cluster all the time: that is no error, and nothing is told that was not stored.
func TestAClusterThatHasChangedMeanwhileIsLookedAtAgain(t *testing.T) {
	c := aCluster("")
	b := newBench(t, c, aPod("c1-2", "true", c))
	b.Fail("c1", apierrors.NewConflict(schema.GroupResource{Resource: "clusters"}, "c1", nil))
	result, err := b.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil || result.RequeueAfter <= 0 || len(b.told()) > 0 {
		t.Errorf("%+v, %v", result, err)
	}
}

func TestPodsThatAskForNothingAreLeftAlone(t *testing.T) {
	c := aCluster("")
	other := aCluster("")
	other.UID = "uid-of-an-earlier-one"
	b := newBench(t, c, aPod("c1-1", "false", c), aPod("c1-2", "true", other))
	b.reconcile(t)
	if now := b.cluster(t); len(now.Status.FencedInstances) > 0 || now.Annotations[api.AnnotationFencing] != "" {
		t.Errorf("fenced %q, annotation %q", now.Status.FencedInstances, now.Annotations[api.AnnotationFencing])
	}
}

func TestOnlyWhatMattersWakesTheReconciler(t *testing.T) {
	before, after := aCluster("c1-1"), aCluster("c1-1")
	after.Annotations["other"] = "x"
	after.Labels = map[string]string{"a": "b"}
	if reworded.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("another annotation wakes it")
	}
	after.Annotations[api.AnnotationFencing] = ""
	if !reworded.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
		t.Error("the end of a fence does not wake it")
	}
}
