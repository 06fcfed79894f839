package cmd

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/plugin/view"
)

func statusCommand(o Options) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "status [CLUSTER]",
		Short: "Show a Cluster: who is the primary and why, the instances, what is wrong",
		Long: "Show a Cluster: who is the primary and why, the instances, what is wrong.\n" +
			"CLUSTER may be left out when the namespace has only one.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output, "", "json", "yaml"); err != nil {
				return err
			}
			c, namespace, err := o.Connect()
			if err != nil {
				return err
			}
			s, err := fetch(cmd.Context(), c, namespace, first(args))
			if err != nil {
				return err
			}
			return show(o, s, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml instead of text for people")
	return cmd
}

// fetch reads the Cluster, and its Pods as far as permitted.
func fetch(ctx context.Context, c client.Client, namespace, name string) (view.Status, error) {
	cluster, err := find(ctx, c, namespace, name)
	if err != nil {
		return view.Status{}, err
	}
	in := view.Input{Cluster: cluster}
	pods := &corev1.PodList{}
	err = c.List(ctx, pods, client.InNamespace(namespace), client.MatchingLabels{api.LabelCluster: cluster.Name})
	if err != nil {
		in.PodsProblem = err.Error()
	}
	in.Pods = pods.Items
	return view.New(in), nil
}

// texts are for a person at a time.
type texts interface{ Text(now time.Time) string }

func show(o Options, s texts, output string) error {
	switch output {
	case "json":
		raw, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			return fmt.Errorf("encoding it: %w", err)
		}
		_, err = fmt.Fprintf(o.Out, "%s\n", raw)
		return err
	case "yaml":
		raw, err := yaml.Marshal(s)
		if err != nil {
			return fmt.Errorf("encoding it: %w", err)
		}
		_, err = o.Out.Write(raw)
		return err
	}
	_, err := fmt.Fprint(o.Out, s.Text(o.Now()))
	return err
}

func first(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
