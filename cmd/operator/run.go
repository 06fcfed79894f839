package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"cnmsql.co/operator/controllers"
)

// leaderElectionID is the name of the Lease by which operators agree on which of them works.
const leaderElectionID = "operator.cnmsql.co"

// Requests per second, and in a burst, to the API server. It has its own fairness; this only stops runaways.
const (
	requestRate  = 200
	requestBurst = 400
)

// run works until ctx ends.
func run(ctx context.Context, c config) error {
	log, err := newLogger(c.logLevel, os.Stdout)
	if err != nil {
		return err
	}
	ctrl.SetLogger(log)
	klog.SetLogger(log.WithName("kubernetes"))
	mgr, err := newManager(c)
	if err != nil {
		return err
	}
	if err := setup(mgr, c); err != nil {
		return err
	}
	log.Info("starting", "version", programVersion(), "operatorImage", c.operatorImage, "namespaces", c.namespaces)
	if err := mgr.Start(ctx); err != nil {
		return fmt.Errorf("running the controllers: %w", err)
	}
	return nil
}

func newManager(c config) (manager.Manager, error) {
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, err
	}
	cache, err := controllers.Cache(c.namespaces...)
	if err != nil {
		return nil, err
	}
	kubernetes, err := ctrl.GetConfig()
	if err != nil {
		return nil, fmt.Errorf("finding the API server: %w", err)
	}
	kubernetes.QPS, kubernetes.Burst = requestRate, requestBurst
	mgr, err := ctrl.NewManager(kubernetes, ctrl.Options{
		Scheme:                  scheme,
		Cache:                   cache,
		Metrics:                 server.Options{BindAddress: c.metricsAddress, SecureServing: c.metricsCertDir != "", CertDir: c.metricsCertDir},
		HealthProbeBindAddress:  c.probeAddress,
		LeaderElection:          c.leaderElect,
		LeaderElectionID:        leaderElectionID,
		LeaderElectionNamespace: c.leaderElectionNamespace,
		// The process ends right after the controllers have, so that the next operator need not wait.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	return mgr, nil
}

// setup registers the controllers and the probes.
func setup(mgr manager.Manager, c config) error {
	err := controllers.SetupWithManager(mgr, controllers.Options{
		Namespaces: c.namespaces, OperatorImage: c.operatorImage, MaxConcurrentReconciles: c.concurrency,
	})
	if err != nil {
		return err
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding /healthz: %w", err)
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return fmt.Errorf("adding /readyz: %w", err)
	}
	return nil
}

// newLogger writes JSON lines.
func newLogger(level string, out io.Writer) (logr.Logger, error) {
	at, err := zapcore.ParseLevel(level)
	if err != nil {
		return logr.Logger{}, fmt.Errorf("log level: %w", err)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(encoding), zapcore.Lock(zapcore.AddSync(out)), at)
	return zapr.NewLogger(zap.New(core)), nil
}
