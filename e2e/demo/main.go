// Command demo shows the product at work on a lab: it installs the operator, makes a Cluster of three, and
// takes its primary away in three ways while an application writes. It ends with a non-zero exit code at the
// first thing that is not as promised. Run it with `make demo`, from the root of the checkout.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

func main() {
	image := flag.String("image", "cnmsql/operator:dev", "the operator's `image`")
	archive := flag.String("archive", "bin/operator.tar", "the `file` that holds it")
	nodes := flag.Int("nodes", 1, "how many nodes the lab gets")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := start(ctx, *image, *archive, *nodes)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\nThe demo failed: %v\n", err)
		fmt.Fprintln(os.Stderr, "The lab is left as it is, if it is up. make demo-down ends it.")
		os.Exit(1)
	}
}

func start(ctx context.Context, image, archive string, nodes int) error {
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the checkout: %w", err)
	}
	if _, err := os.Stat(filepath.Join(root, "config/default")); err != nil {
		return fmt.Errorf("run this from the root of the checkout: %w", err)
	}
	d := &demo{
		say: newSay(os.Stdout), root: root, image: image, archive: filepath.Join(root, archive), nodes: nodes,
		lab:     framework.Lab{Script: filepath.Join(root, "e2e/lab/lab")},
		cluster: client.ObjectKey{Namespace: "default", Name: "demo"},
	}
	return d.run(ctx)
}
