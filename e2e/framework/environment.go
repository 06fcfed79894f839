package framework

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Where the operator is installed by config/default.
const (
	OperatorNamespace = "cnmsql-system"
	OperatorName      = "cnmsql-operator"
)

// Environment is a lab that is up, with the ways to talk to it.
type Environment struct {
	Lab        Lab
	Client     client.WithWatch
	Config     *rest.Config
	Kubeconfig string
	// Bin is the folder with kubectl and kubectl-cnmsql.
	Bin string
}

// Open connects to a lab that is up. bin is the folder with kubectl and the plugin.
func Open(ctx context.Context, lab Lab, bin string) (*Environment, error) {
	kubeconfig, err := lab.Kubeconfig(ctx)
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}
	config.QPS, config.Burst = 100, 200
	ctrllog.SetLogger(logr.Discard()) // what is to be known comes back as an error
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), api.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering kinds: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the lab: %w", err)
	}
	return &Environment{Lab: lab, Client: c, Config: config, Kubeconfig: kubeconfig, Bin: bin}, nil
}

// Kubectl runs kubectl, which finds the plugin.
func (e *Environment) Kubectl(ctx context.Context, args ...string) (string, error) {
	env := []string{"KUBECONFIG=" + e.Kubeconfig, "PATH=" + e.Bin + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	return run(ctx, env, filepath.Join(e.Bin, "kubectl"), args...)
}

// Plugin runs kubectl cnmsql in a namespace and returns what it printed. kubectl takes a plugin's name first
// and hands on the flags behind it.
func (e *Environment) Plugin(ctx context.Context, namespace string, args ...string) (string, error) {
	return e.Kubectl(ctx, slices.Concat([]string{"cnmsql"}, args, []string{"-n", namespace})...)
}

// Install loads the operator's image and applies config/default. An operator that runs from an earlier image
// is started anew from this one.
func (e *Environment) Install(ctx context.Context, archive string) error {
	if err := e.Lab.Load(ctx, archive); err != nil {
		return err
	}
	out, err := e.Kubectl(ctx, "apply", "-k", filepath.Join(e.Lab.root(), "config/default"))
	if err != nil {
		return err
	}
	if !strings.Contains(out, "deployment.apps/"+OperatorName+" created") {
		if _, err := e.Kubectl(ctx, "-n", OperatorNamespace, "rollout", "restart", "deployment/"+OperatorName); err != nil {
			return err
		}
	}
	return e.OperatorReady(ctx)
}

// OperatorReady waits until the operator runs as its Deployment says.
func (e *Environment) OperatorReady(ctx context.Context) error {
	return Await(ctx, "the operator to run", 2*time.Minute, func(ctx context.Context) (bool, string, error) {
		d := &appsv1.Deployment{}
		if err := e.Client.Get(ctx, client.ObjectKey{Namespace: OperatorNamespace, Name: OperatorName}, d); err != nil {
			return false, "", err
		}
		s := d.Status
		done := s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == *d.Spec.Replicas &&
			s.Replicas == s.UpdatedReplicas && s.AvailableReplicas == s.Replicas
		return done, fmt.Sprintf("%d of %d replicas updated, %d available", s.UpdatedReplicas, s.Replicas, s.AvailableReplicas), nil
	})
}
