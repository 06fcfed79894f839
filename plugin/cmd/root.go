package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/plugin/control"
)

// Options are what the program gives to the verbs.
type Options struct {
	Version  string
	Out, Err io.Writer
	// Now is the clock for ages.
	Now func() time.Time
	// Connect returns the client and the namespace to look into; nil uses the kubeconfig and the flags.
	Connect func() (client.WithWatch, string, error)
	// Dial returns a way into Pods; nil uses the kubeconfig and the flags.
	Dial func() (control.Dialer, error)
	// Ask asks an instance for its report; nil is control.Ask.
	Ask func(ctx context.Context, dial control.Dialer, c control.Credentials, clusterUID string, pod *corev1.Pod) (*protocol.Report, error)
	// In is what "-" as a file means.
	In io.Reader
}

// New returns the root command.
func New(o Options) *cobra.Command {
	flags := genericclioptions.NewConfigFlags(true)
	if o.Connect == nil {
		o.Connect = func() (client.WithWatch, string, error) { return connect(flags) }
	}
	if o.Dial == nil {
		o.Dial = func() (control.Dialer, error) { return forward(flags) }
	}
	if o.Ask == nil {
		o.Ask = control.Ask
	}
	root := &cobra.Command{
		Use:           "kubectl-cnmsql",
		Short:         "Look after MySQL clusters",
		Annotations:   map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl cnmsql"},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(o.Out)
	root.SetErr(o.Err)
	flags.AddFlags(root.PersistentFlags())
	root.AddCommand(statusCommand(o), promoteCommand(o), fenceCommand(o), explainCommand(o), debugCommand(o), versionCommand(o))
	return root
}

func connect(flags *genericclioptions.ConfigFlags) (client.WithWatch, string, error) {
	namespace, _, err := flags.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, "", fmt.Errorf("reading the kubeconfig: %w", err)
	}
	scheme := runtime.NewScheme()
	err = errors.Join(api.AddToScheme(scheme), corev1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), storagev1.AddToScheme(scheme))
	if err != nil {
		return nil, "", fmt.Errorf("registering kinds: %w", err)
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, "", fmt.Errorf("connecting: %w", err)
	}
	return c, namespace, nil
}

func forward(flags *genericclioptions.ConfigFlags) (control.Dialer, error) {
	config, err := flags.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return control.Forward(config)
}

// instanceOf connects, and takes [CLUSTER] INSTANCE apart; the Cluster's name is empty when it is left out.
func instanceOf(o Options, args []string) (c client.WithWatch, cluster client.ObjectKey, instance string, err error) {
	if len(args) == 2 {
		cluster.Name = args[0]
	}
	c, cluster.Namespace, err = o.Connect()
	return c, cluster, args[len(args)-1], err
}

// find reads the named Cluster, or the only one of the namespace when the name is empty.
func find(ctx context.Context, c client.Client, namespace, name string) (*api.Cluster, error) {
	if name != "" {
		found := &api.Cluster{}
		err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, found)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no Cluster %q in namespace %q; %s", name, namespace, existing(ctx, c, namespace))
		}
		return found, explain(err)
	}
	list := &api.ClusterList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, explain(err)
	}
	switch len(list.Items) {
	case 0:
		return nil, fmt.Errorf("there is no Cluster in namespace %q", namespace)
	case 1:
		return &list.Items[0], nil
	}
	return nil, fmt.Errorf("which Cluster? %s", clusterNames(list, namespace))
}

// existing is for the end of an error message.
func existing(ctx context.Context, c client.Client, namespace string) string {
	list := &api.ClusterList{}
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return "which there are could not be listed: " + err.Error()
	}
	return clusterNames(list, namespace)
}

func clusterNames(list *api.ClusterList, namespace string) string {
	if len(list.Items) == 0 {
		return "it has none"
	}
	names := make([]string, 0, len(list.Items))
	for _, c := range list.Items {
		names = append(names, c.Name)
	}
	return fmt.Sprintf("namespace %q has: %s", namespace, strings.Join(names, ", "))
}

func explain(err error) error {
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("this Kubernetes cluster does not know Clusters; is the operator installed? (%w)", err)
	}
	return err
}

// complete offers the names of Clusters.
func complete(o Options) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		c, namespace, err := o.Connect()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		if len(args) > 0 {
			cluster, err := find(cmd.Context(), c, namespace, args[0])
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return cluster.Status.InstanceNames, cobra.ShellCompDirectiveNoFileComp
		}
		list := &api.ClusterList{}
		if err := c.List(cmd.Context(), list, client.InNamespace(namespace)); err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		var names []cobra.Completion
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
