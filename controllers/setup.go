// Package controllers puts together all reconcilers of Clusters.
//
// Each is a package of its own with its own field manager and its own part of the status; they share the caches and
// the observer of instances that are made here, and nothing else.
package controllers

import (
	"fmt"

	cmv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/certificates"
	"cnmsql.co/operator/controllers/credentials"
	"cnmsql.co/operator/controllers/fencing"
	"cnmsql.co/operator/controllers/internal/observer"
	"cnmsql.co/operator/controllers/internal/scope"
	"cnmsql.co/operator/controllers/lease"
	"cnmsql.co/operator/controllers/semisync"
	"cnmsql.co/operator/controllers/services"
	"cnmsql.co/operator/controllers/topology"
)

// Options configure all controllers.
type Options struct {
	// Namespaces are those to work in; none means all. The manager's cache is to be made for the same ones.
	Namespaces []string
	// OperatorImage is the image with the instance manager, for the init container of every Pod.
	OperatorImage string
	// MaxConcurrentReconciles is how many Clusters each controller works on at once; 0 means one.
	MaxConcurrentReconciles int
}

// Scheme knows every kind that the controllers use.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme, cmv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering kinds: %w", err)
		}
	}
	return scheme, nil
}

// Cache is how the manager's cache is to be made: it holds what belongs to Clusters in these namespaces.
func Cache(namespaces ...string) (cache.Options, error) { return scope.Cache(namespaces...) }

// SetupWithManager registers all controllers.
func SetupWithManager(mgr manager.Manager, o Options) error {
	secrets, err := scope.Secrets(mgr, o.Namespaces...)
	if err != nil {
		return err
	}
	instances := observer.New(observer.Options{Log: mgr.GetLogger().WithName("observer")})
	if err := mgr.Add(instances); err != nil {
		return fmt.Errorf("adding the observer of instances: %w", err)
	}
	n := o.MaxConcurrentReconciles
	for _, setup := range []func() error{
		func() error {
			return topology.SetupWithManager(mgr, topology.Options{
				Instances: instances, Secrets: secrets, Nodes: len(o.Namespaces) == 0, OperatorImage: o.OperatorImage, MaxConcurrentReconciles: n,
			})
		},
		func() error { return services.SetupWithManager(mgr, services.Options{MaxConcurrentReconciles: n}) },
		func() error { return lease.SetupWithManager(mgr, lease.Options{MaxConcurrentReconciles: n}) },
		func() error { return fencing.SetupWithManager(mgr, fencing.Options{MaxConcurrentReconciles: n}) },
		func() error {
			return certificates.SetupWithManager(mgr, certificates.Options{MaxConcurrentReconciles: n})
		},
		func() error {
			return credentials.SetupWithManager(mgr, credentials.Options{Secrets: secrets, MaxConcurrentReconciles: n})
		},
		func() error {
			return semisync.SetupWithManager(mgr, semisync.Options{
				Instances: instances, Events: instances.Changes(), MaxConcurrentReconciles: n,
			})
		},
	} {
		if err := setup(); err != nil {
			return err
		}
	}
	return nil
}
