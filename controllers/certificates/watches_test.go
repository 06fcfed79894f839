package certificates

import (
	"errors"
	"testing"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestWatchesStartOnceAndOnlyWhenTheKindsExist(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{cmv1.SchemeGroupVersion})
	watched := 0
	w := &watcher{mapper: mapper, watch: func(client.Object) error { watched++; return nil }}
	if ok, err := w.ready(); ok || err != nil || watched != 0 {
		t.Errorf("without the kinds: ready %v, %v, %d watches", ok, err, watched)
	}
	for _, kind := range []string{cmv1.CertificateKind, cmv1.IssuerKind} {
		mapper.Add(cmv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	for range 3 {
		if ok, err := w.ready(); !ok || err != nil {
			t.Errorf("with the kinds: ready %v, %v", ok, err)
		}
	}
	if watched != 2 {
		t.Errorf("%d watches", watched)
	}
}

func TestWatchThatCannotStartIsTriedAgain(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{cmv1.CertificateKind, cmv1.IssuerKind} {
		mapper.Add(cmv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	refuse := true
	w := &watcher{mapper: mapper, watch: func(client.Object) error {
		if refuse {
			return errors.New("no")
		}
		return nil
	}}
	if ok, err := w.ready(); ok || err == nil {
		t.Errorf("ready %v, %v", ok, err)
	}
	refuse = false
	if ok, err := w.ready(); !ok || err != nil {
		t.Errorf("ready %v, %v", ok, err)
	}
}
