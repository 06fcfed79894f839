package apply_test

import (
	"errors"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/apply"
	"cnmsql.co/operator/controllers/internal/fakeapi"
)

const manager = "cnmsql-test"

// world is an API server with the steps that these tests take.
type world struct{ *fakeapi.Server }

func newWorld(t *testing.T, existing ...client.Object) *world {
	t.Helper()
	return &world{fakeapi.New(t, existing...)}
}

func owner() *api.Cluster {
	return &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1", UID: "uid-of-c1"}}
}

func service() *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1-rw", Labels: map[string]string{"a": "1", "b": "2"}},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"x": "y"}, Ports: []corev1.ServicePort{{Name: "mysql", Port: 3306, TargetPort: intstr.FromString("mysql")}}},
	}
}

func (w *world) apply(t *testing.T, desired client.Object) bool {
	t.Helper()
	changed, err := apply.Apply(t.Context(), w, manager, owner(), desired)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

func (w *world) service(t *testing.T) *corev1.Service {
	t.Helper()
	s := &corev1.Service{}
	if err := w.Live.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "c1-rw"}, s); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSecondApplyWritesNothing(t *testing.T) {
	w := newWorld(t)
	if !w.apply(t, service()) {
		t.Error("the first apply says that it changed nothing")
	}
	for range 10 {
		if w.apply(t, service()) {
			t.Error("a later apply says that it changed something")
		}
	}
	if writes := w.Taken(); len(writes) != 1 {
		t.Errorf("writes %v", writes)
	}
	if !metav1.IsControlledBy(w.service(t), owner()) {
		t.Error("the object has no owner")
	}
}

func TestFieldThatIsNoLongerWantedIsRemoved(t *testing.T) {
	w := newWorld(t)
	w.apply(t, service())
	for _, drop := range []string{"a", "b"} { // first over our create, then over our apply
		next := service()
		if drop == "b" {
			delete(next.Labels, "a")
		}
		delete(next.Labels, drop)
		if !w.apply(t, next) {
			t.Errorf("dropping %s changed nothing", drop)
		}
		if _, still := w.service(t).Labels[drop]; still {
			t.Errorf("label %s is still there: %v", drop, w.service(t).Labels)
		}
	}
}

func TestWhatOthersSetStays(t *testing.T) {
	w := newWorld(t)
	w.apply(t, service())
	s := w.service(t)
	s.Annotations["cloud.example.com/id"] = "lb-7"
	s.Spec.Ports[0].NodePort = 31306
	s.Spec.ClusterIP = "10.0.0.7"
	s.Spec.LoadBalancerClass = new("cloud")
	if err := w.Update(t.Context(), s, client.FieldOwner("cloud")); err != nil {
		t.Fatal(err)
	}
	w.Taken()
	for range 10 {
		w.apply(t, service())
	}
	if writes := w.Taken(); len(writes) != 0 {
		t.Errorf("writes in steady state: %v", writes)
	}
	next := service()
	next.Labels["c"] = "3"
	w.apply(t, next)
	got := w.service(t)
	if got.Annotations["cloud.example.com/id"] != "lb-7" || got.Spec.ClusterIP != "10.0.0.7" || got.Spec.Ports[0].NodePort != 31306 || got.Spec.LoadBalancerClass == nil {
		t.Errorf("a foreign field was lost: %+v %+v", got.Annotations, got.Spec)
	}
}

func TestDriftInOurFieldsIsPutRight(t *testing.T) {
	w := newWorld(t)
	w.apply(t, service())
	s := w.service(t)
	s.Spec.Selector = map[string]string{"x": "hijacked"}
	if err := w.Update(t.Context(), s, client.FieldOwner("kubectl")); err != nil {
		t.Fatal(err)
	}
	if !w.apply(t, service()) || !maps.Equal(w.service(t).Spec.Selector, map[string]string{"x": "y"}) {
		t.Errorf("the selector is %v", w.service(t).Spec.Selector)
	}
}

func TestForeignObjectIsNotTakenOver(t *testing.T) {
	for name, hidden := range map[string]bool{"seen by the cache": false, "not in the cache": true} {
		t.Run(name, func(t *testing.T) {
			foreign := service()
			foreign.Labels = map[string]string{"mine": "yes"}
			foreign.Spec.Selector = map[string]string{"app": "else"}
			w := newWorld(t, foreign)
			if hidden {
				w.Hide("c1-rw")
			}
			before := w.service(t)
			_, err := apply.Apply(t.Context(), w, manager, owner(), service())
			var is *apply.ForeignError
			if !errors.As(err, &is) || is.Name != "c1-rw" || is.Kind != "Service" {
				t.Fatalf("error %v", err)
			}
			if after := w.service(t); after.ResourceVersion != before.ResourceVersion {
				t.Errorf("the foreign object was changed: %+v", after)
			}
		})
	}
}

func TestOurObjectThatTheCacheDoesNotShowYetIsNotForeign(t *testing.T) {
	w := newWorld(t)
	w.apply(t, service())
	w.Hide("c1-rw")
	if w.apply(t, service()) {
		t.Error("an unchanged object was written")
	}
	next := service()
	next.Labels["c"] = "3"
	if !w.apply(t, next) || w.service(t).Labels["c"] != "3" {
		t.Error("a changed object was not written")
	}
}

func TestHashFollowsContentAlone(t *testing.T) {
	a, b := service(), service()
	b.ResourceVersion, b.UID = "7", "x"
	b.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "10.1.1.1"}}
	ha, _ := apply.Hash(a)
	hb, _ := apply.Hash(b)
	b.Labels["a"] = "other"
	hc, _ := apply.Hash(b)
	if ha == "" || ha != hb || ha == hc {
		t.Errorf("hashes %s %s %s", ha, hb, hc)
	}
}
