package cmd

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

func (w *world) fenced(name string) string { return w.get(name).Annotations[api.AnnotationFencing] }

func TestFenceNamesTheInstanceInTheAnnotation(t *testing.T) {
	for _, args := range [][]string{{"on", "c1", "c1-2"}, {"on", "c1", "2"}, {"on", "2"}} {
		w := newWorld(t, cluster("a", "c1"))
		out, err := w.call(append([]string{"fence"}, args...)...)
		if err != nil || out != "asked to fence c1-2\n" || w.fenced("c1") != "c1-2" {
			t.Errorf("%v: %q, %v; annotation %q", args, out, err, w.fenced("c1"))
		}
	}
}

func TestFencesAreKeptBesideEachOther(t *testing.T) {
	w := newWorld(t, cluster("a", "c1"))
	for _, step := range []struct{ verb, instance, says, left string }{
		{"on", "3", "asked to fence c1-3", "c1-3"},
		{"on", "1", "asked to fence c1-1, the primary of c1: writes stop until a replica is promoted", "c1-1,c1-3"},
		{"on", "1", "c1-1 is fenced already: nothing to do", "c1-1,c1-3"},
		{"off", "3", "asked to end the fence of c1-3", "c1-1"},
		{"off", "2", "c1-2 is not fenced: nothing to do", "c1-1"},
		{"off", "1", "asked to end the fence of c1-1", ""},
	} {
		out, err := w.call("fence", step.verb, "c1", step.instance)
		if err != nil || !strings.Contains(out, step.says) || w.fenced("c1") != step.left {
			t.Errorf("%s %s: %q, %v; annotation %q", step.verb, step.instance, out, err, w.fenced("c1"))
		}
	}
	if _, there := w.get("c1").Annotations[api.AnnotationFencing]; there {
		t.Error("an empty annotation is left behind")
	}
}

func TestFenceOfWhatDoesNotExistSaysWhatDoes(t *testing.T) {
	w := newWorld(t, cluster("a", "c1"))
	for _, args := range [][]string{{"on", "c1", "c1-9"}, {"on", "c1", "c2-1"}, {"off", "c1", "c1-9"}} {
		if _, err := w.call(append([]string{"fence"}, args...)...); err == nil || !strings.Contains(err.Error(), "c1-1, c1-2, c1-3") {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, err := w.call("fence", "on", "nope", "c1-1"); err == nil || !strings.Contains(err.Error(), `there is no Cluster "nope"`) {
		t.Error(err)
	}
}

// A name that somebody wrote by hand, or of an instance that was removed since.
func TestAFenceOfAnUnknownInstanceCanBeTakenOut(t *testing.T) {
	c := cluster("a", "c1")
	c.Annotations = map[string]string{api.AnnotationFencing: "c1-2, c1-7"}
	w := newWorld(t, c)
	if _, err := w.call("fence", "off", "c1", "c1-7"); err != nil || w.fenced("c1") != "c1-2" {
		t.Errorf("%v; annotation %q", err, w.fenced("c1"))
	}
}

func TestFenceOffEndsARequestThatIsStillOnThePod(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c1-2", Annotations: map[string]string{api.AnnotationFencing: "true", "other": "x"}}}
	w := newWorld(t, cluster("a", "c1"), pod)
	out, err := w.call("fence", "off", "c1", "c1-2")
	if err != nil || out != "asked to end the fence of c1-2\n" {
		t.Fatalf("%q, %v", out, err)
	}
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil || len(pod.Annotations) != 1 {
		t.Errorf("annotations %v, %v", pod.Annotations, err)
	}
}

func TestFenceWithoutTheRightSaysWhichOneIsMissing(t *testing.T) {
	w := newWorld(t, cluster("a", "c1"))
	w.funcs.Patch = func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "clusters"}, "c1", nil)
	}
	if _, err := w.call("fence", "on", "c1", "2"); err == nil || !strings.Contains(err.Error(), "you may not change the Cluster c1") {
		t.Error(err)
	}
}

func TestFenceWaitsUntilTheServerHasStopped(t *testing.T) {
	ready := corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}
	pod := func(conditions ...corev1.PodCondition) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c1-2"}, Status: corev1.PodStatus{Conditions: conditions}}
	}
	recorded := func() *api.Cluster {
		c := cluster("a", "c1")
		c.Status.FencedInstances = []string{"c1-2"}
		return c
	}
	for _, tc := range []struct {
		verb  string
		world *world
		says  string
		fails bool
	}{
		{"on", newWorld(t, cluster("a", "c1"), pod(ready)), "the operator has not fenced c1-2 yet", true},
		{"on", newWorld(t, recorded(), pod(ready)), "c1-2 is fenced and still ready: its server has not stopped", true},
		{"on", newWorld(t, recorded(), pod()), "c1-2 is fenced: in no Service, and not ready", false},
		{"on", newWorld(t, recorded()), "c1-2 is fenced", false},
		{"off", newWorld(t, recorded(), pod()), "the operator has not ended the fence of c1-2 yet", true},
		{"off", newWorld(t, cluster("a", "c1"), pod()), "c1-2 is not ready yet", true},
		{"off", newWorld(t, cluster("a", "c1"), pod(ready)), "c1-2 is back in service", false},
	} {
		out, err := tc.world.call("fence", tc.verb, "c1", "2", "--wait", "--timeout", "10ms")
		text := out
		if err != nil {
			text += err.Error()
		}
		if !strings.Contains(text, tc.says) || (err != nil) != tc.fails {
			t.Errorf("%s: %q, %v; want %q", tc.verb, out, err, tc.says)
		}
	}
}
