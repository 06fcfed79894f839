package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/plugin/view"
)

func explainCommand(o Options) *cobra.Command {
	output, file := "", ""
	cmd := &cobra.Command{
		Use:   "explain [CLUSTER]",
		Short: "Show what the operator decides now and why, and what it would do if the primary died",
		Long: "Show what the operator decides about the primary now, by which rule, and what it would do if the primary\n" +
			"died: the operator's own rules are asked, as of this version of the plugin. Nothing is changed.\n" +
			"CLUSTER may be left out when the namespace has only one. With --file it is a snapshot that\n" +
			"`kubectl cnmsql debug snapshot` wrote that is explained, and no cluster is looked at.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output, "", "json", "yaml"); err != nil {
				return err
			}
			if file != "" && len(args) > 0 {
				return errors.New("either CLUSTER or --file, not both")
			}
			s, notes, err := snapshot(cmd.Context(), o, file, first(args))
			if err != nil {
				return err
			}
			return show(o, view.Explained{Explanation: core.Explain(s), Notes: notes}, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml instead of text for people")
	cmd.Flags().StringVarP(&file, "file", "f", "", "a snapshot to explain, - for the standard input")
	return cmd
}

func checkOutput(output string, may ...string) error {
	if slices.Contains(may, output) {
		return nil
	}
	return fmt.Errorf("--output is %q; it may be json or yaml", output)
}

// snapshot is read from a file, or of a live cluster.
func snapshot(ctx context.Context, o Options, file, name string) (core.Snapshot, []string, error) {
	if file != "" {
		s, err := readSnapshot(o, file)
		return s, nil, err
	}
	c, namespace, err := o.Connect()
	if err != nil {
		return core.Snapshot{}, nil, err
	}
	dial, err := o.Dial()
	if err != nil {
		return core.Snapshot{}, nil, err
	}
	w := &observer{o: o, c: c, dial: dial}
	s, err := w.watch(ctx, namespace, name)
	return s, w.notes, err
}

func readSnapshot(o Options, file string) (core.Snapshot, error) {
	raw, err := readAll(o, file)
	if err != nil {
		return core.Snapshot{}, fmt.Errorf("reading the snapshot: %w", err)
	}
	raw, err = yaml.YAMLToJSONStrict(raw)
	if err != nil {
		return core.Snapshot{}, fmt.Errorf("reading the snapshot %s: %w", file, err)
	}
	s, err := core.ParseSnapshot(raw)
	if err != nil {
		return s, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func readAll(o Options, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(o.In)
	}
	return os.ReadFile(filepath.Clean(file))
}

func debugCommand(o Options) *cobra.Command {
	debug := &cobra.Command{Use: "debug", Short: "For finding out why something happened"}
	debug.AddCommand(snapshotCommand(o))
	return debug
}

func snapshotCommand(o Options) *cobra.Command {
	output := "yaml"
	cmd := &cobra.Command{
		Use:   "snapshot [CLUSTER]",
		Short: "Write down all that the operator decides by, without secrets",
		Long: "Write down all that the operator decides by, as of now: what the API server knows, and what the instances\n" +
			"say. `kubectl cnmsql explain --file` reads it, and so do the tests of the rules: a snapshot in a bug report\n" +
			"becomes a test. It holds no passwords, no keys, no environment and no parameters; of the servers' error\n" +
			"messages neither statements nor values. Names of instances, Pods and images, and GTIDs are in it.\n" +
			"Nothing is changed. CLUSTER may be left out when the namespace has only one.",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: complete(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkOutput(output, "json", "yaml"); err != nil {
				return err
			}
			s, notes, err := snapshot(cmd.Context(), o, "", first(args))
			if err != nil {
				return err
			}
			for _, n := range notes {
				_, _ = fmt.Fprintf(o.Err, "note: %s\n", n)
			}
			return writeSnapshot(o.Out, s, output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", output, "yaml or json")
	return cmd
}

func writeSnapshot(out io.Writer, s core.Snapshot, output string) error {
	raw, err := s.Dump()
	if err != nil {
		return err
	}
	if output == "yaml" {
		raw, err = yaml.JSONToYAML(raw)
	} else {
		raw, err = json.MarshalIndent(json.RawMessage(raw), "", "  ")
	}
	if err != nil {
		return fmt.Errorf("encoding the snapshot: %w", err)
	}
	_, err = fmt.Fprintf(out, "%s\n", bytes.TrimSpace(raw))
	return err
}
