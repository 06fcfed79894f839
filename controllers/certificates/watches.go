package certificates

import (
	"fmt"
	"sync"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	api "cnmsql.co/operator/api/v1alpha1"
)

// watcher starts the watches of cert-manager's kinds as soon as these exist: a controller that watches a
// kind which does not would end the operator.
type watcher struct {
	mapper   meta.RESTMapper
	watch    func(client.Object) error
	mu       sync.Mutex
	watching bool
}

func newWatcher(mgr ctrl.Manager, c controller.Controller) *watcher {
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), &api.Cluster{}, handler.OnlyControllerOwner())
	return &watcher{mapper: mgr.GetRESTMapper(), watch: func(o client.Object) error {
		return c.Watch(source.Kind(mgr.GetCache(), o, owner))
	}}
}

// ready tells whether cert-manager's kinds are there, and watches them from the first time that they are.
func (w *watcher) ready() (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.watching {
		return true, nil
	}
	for _, kind := range []string{cmv1.CertificateKind, cmv1.IssuerKind} {
		_, err := w.mapper.RESTMapping(schema.GroupKind{Group: cmv1.SchemeGroupVersion.Group, Kind: kind}, cmv1.SchemeGroupVersion.Version)
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("looking for cert-manager's kind %s: %w", kind, err)
		}
	}
	for _, o := range []client.Object{&cmv1.Certificate{}, &cmv1.Issuer{}} {
		if err := w.watch(o); err != nil {
			return false, fmt.Errorf("watching cert-manager's %T: %w", o, err)
		}
	}
	w.watching = true
	return true, nil
}
