// Package fakeapi is an API server in memory for the tests of reconcilers: it counts writes, and its client
// can be made blind to objects as a cache is that does not select them. Test support only.
package fakeapi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	clientgoapply "k8s.io/client-go/applyconfigurations"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Server is the API server and its client.
type Server struct {
	client.Client
	// Writes are the requests that change something, as "verb Kind name", in order.
	Writes []string
	// Live reads as an APIReader does: everything.
	Live client.Reader

	hidden []string
	fail   map[string]error
}

// Scheme knows every kind that reconcilers use.
func Scheme(t testing.TB) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme, cmv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return scheme
}

// New returns a server that holds the given objects.
func New(t testing.TB, existing ...client.Object) *Server {
	t.Helper()
	s := &Server{fail: map[string]error{}}
	scheme := Scheme(t)
	inner := fake.NewClientBuilder().WithScheme(scheme).WithObjects(existing...).
		WithTypeConverters(clusterConverter(t), clientgoapply.NewTypeConverter(clientgoscheme.Scheme), managedfields.NewDeducedTypeConverter()).
		WithStatusSubresource(&api.Cluster{}, &cmv1.Certificate{}).WithReturnManagedFields().Build()
	s.Live = inner
	s.Client = interceptor.NewClient(inner, interceptor.Funcs{
		Get: s.get, Create: s.create, Update: s.update, Patch: s.patch, Apply: s.apply, Delete: s.delete,
		SubResourcePatch: s.subPatch, SubResourceApply: s.subApply, SubResourceUpdate: s.subUpdate,
	})
	return s
}

// Hide makes objects of these names invisible to Get, as they are to a cache that does not hold them.
func (s *Server) Hide(names ...string) { s.hidden = names }

// Fail makes creations, patches and deletions of the object of this name end with err; nil ends that.
func (s *Server) Fail(name string, err error) { s.fail[name] = err }

// Taken returns the writes since it was last called.
func (s *Server) Taken() []string {
	w := s.Writes
	s.Writes = nil
	return w
}

func (s *Server) wrote(verb string, o any) {
	s.Writes = append(s.Writes, fmt.Sprintf("%s %s", verb, describe(o)))
}

func describe(o any) string {
	if named, ok := o.(interface{ GetName() string }); ok {
		return fmt.Sprintf("%T %s", o, named.GetName())
	}
	return fmt.Sprintf("%T", o)
}

func (s *Server) get(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if slices.Contains(s.hidden, key.Name) {
		key.Name = "not-in-the-cache"
	}
	return c.Get(ctx, key, o, opts...)
}

func (s *Server) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	s.wrote("create", o)
	if err := s.fail[o.GetName()]; err != nil {
		return err
	}
	return c.Create(ctx, o, opts...)
}

func (s *Server) update(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
	s.wrote("update", o)
	return c.Update(ctx, o, opts...)
}

func (s *Server) patch(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if options := (&client.PatchOptions{}).ApplyOptions(opts); len(options.DryRun) > 0 {
		return c.Get(ctx, client.ObjectKeyFromObject(o), o)
	}
	s.wrote("patch", o)
	if err := s.fail[o.GetName()]; err != nil {
		return err
	}
	return c.Patch(ctx, o, p, opts...)
}

func (s *Server) apply(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	s.wrote("apply", o)
	return c.Apply(ctx, o, opts...)
}

func (s *Server) delete(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
	s.wrote("delete", o)
	if err := s.fail[o.GetName()]; err != nil {
		return err
	}
	options := (&client.DeleteOptions{}).ApplyOptions(opts)
	if p := options.Preconditions; p != nil && p.UID != nil {
		now, _ := o.DeepCopyObject().(client.Object)
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
			return err
		}
		if now.GetUID() != *p.UID {
			return apierrors.NewConflict(schema.GroupResource{Resource: fmt.Sprintf("%T", o)}, o.GetName(), errors.New("the UID is another one"))
		}
	}
	return c.Delete(ctx, o, opts...)
}

func (s *Server) subPatch(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	s.wrote("patch "+sub, o)
	return c.SubResource(sub).Patch(ctx, o, p, opts...)
}

func (s *Server) subUpdate(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
	s.wrote("update "+sub, o)
	return c.SubResource(sub).Update(ctx, o, opts...)
}

func (s *Server) subApply(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	s.wrote("apply "+sub, o)
	return c.SubResource(sub).Apply(ctx, o, opts...)
}
