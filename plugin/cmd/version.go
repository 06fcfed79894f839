package cmd

import (
	"fmt"

	"github.com/spf13/cobra"

	api "cnmsql.co/operator/api/v1alpha1"
)

func versionCommand(o Options) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program and of the API it speaks",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(o.Out, "kubectl-cnmsql %s, API %s\n", o.Version, api.GroupVersion)
			return err
		},
	}
}
