package apply_test

import (
	"context"
	"errors"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/apply"
)

const manager = "cnmsql-test"

// world is an API server that counts writes. hidden objects are not in the cache.
type world struct {
	client.Client
	writes int
	hidden map[string]bool
}

func newWorld(t *testing.T, existing ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{hidden: map[string]bool{}}
	w.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(existing...).WithReturnManagedFields().
		WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if w.hidden[key.Name] {
					key.Name = "not-in-the-cache"
				}
				return c.Get(ctx, key, o, opts...)
			},
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				w.writes++
				return c.Create(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if options := (&client.PatchOptions{}).ApplyOptions(opts); len(options.DryRun) > 0 {
					return c.Get(ctx, client.ObjectKeyFromObject(o), o)
				}
				w.writes++
				return c.Patch(ctx, o, p, opts...)
			},
			Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				w.writes++
				return c.Apply(ctx, o, opts...)
			},
		}).Build()
	return w
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
	hidden := w.hidden
	w.hidden = nil
	defer func() { w.hidden = hidden }()
	if err := w.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "c1-rw"}, s); err != nil {
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
	if w.writes != 1 {
		t.Errorf("%d writes", w.writes)
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
	w.writes = 0
	for range 10 {
		w.apply(t, service())
	}
	if w.writes != 0 {
		t.Errorf("%d writes in steady state", w.writes)
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
			w.hidden["c1-rw"] = hidden
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
	w.hidden["c1-rw"] = true
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
