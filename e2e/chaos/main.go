package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"cnmsql.co/operator/e2e/chaos/plan"
	"cnmsql.co/operator/e2e/framework"
)

// options are what the flags say.
type options struct {
	archive  string
	nodes    int
	seed     uint64
	duration time.Duration
	kinds    []plan.Kind
	logs     string
	dry      int
}

func main() {
	o := options{}
	flag.StringVar(&o.archive, "archive", "bin/operator.tar", "the `file` with the operator's image")
	flag.IntVar(&o.nodes, "nodes", 3, "how many nodes a lab gets that is made for this")
	flag.Uint64Var(&o.seed, "seed", 1, "of the sequence of faults")
	flag.DurationVar(&o.duration, "duration", 10*time.Minute, "no round begins after this `time`")
	kinds := flag.String("kinds", "", "only these `faults`, with commas; empty is all: "+names(plan.All()))
	flag.StringVar(&o.logs, "logs", "dist/chaos", "the `folder` for what is recorded")
	flag.IntVar(&o.dry, "dry-run", 0, "print this many rounds and do nothing")
	flag.Parse()
	err := o.choose(*kinds)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		err = start(ctx, o)
		stop()
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "\nchaos: %v\n", err)
		os.Exit(1)
	}
}

// choose reads the list of kinds.
func (o *options) choose(list string) error {
	o.kinds = plan.All()
	if list == "" {
		return nil
	}
	o.kinds = nil
	for name := range strings.SplitSeq(list, ",") {
		if _, known := plan.Kinds[plan.Kind(name)]; !known {
			return fmt.Errorf("there is no fault %q; there are %s", name, names(plan.All()))
		}
		o.kinds = append(o.kinds, plan.Kind(name))
	}
	return nil
}

func names(kinds []plan.Kind) string {
	var list []string
	for _, k := range kinds {
		list = append(list, string(k))
	}
	return strings.Join(list, ",")
}

// start finds or makes the lab. One that it made, it ends.
func start(ctx context.Context, o options) error {
	if o.dry > 0 {
		return o.print(os.Stdout)
	}
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the checkout: %w", err)
	}
	folder := filepath.Join(root, o.logs, fmt.Sprintf("seed-%d-%s", o.seed, time.Now().UTC().Format("20060102-150405")))
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making the folder for logs: %w", err)
	}
	lab := framework.Lab{Script: filepath.Join(root, "e2e/lab/lab")}
	return lab.During(ctx, o.nodes, filepath.Join(folder, "lab"), func() error {
		e, err := framework.Open(ctx, lab, filepath.Join(root, "bin"))
		if err != nil {
			return err
		}
		text, err := os.Create(filepath.Join(folder, "report.txt"))
		if err != nil {
			return fmt.Errorf("making the report: %w", err)
		}
		r := &runner{options: o, e: e, archive: filepath.Join(root, o.archive), folder: folder, out: io.MultiWriter(os.Stdout, text)}
		return errors.Join(r.run(ctx), text.Close())
	}, "--volumes", "2048", "--restart-delay", "10s")
}

// print shows what a seed means.
func (o options) print(out io.Writer) error {
	p := plan.New(o.seed, slices.Clone(o.kinds))
	for range o.dry {
		if _, err := fmt.Fprintln(out, p.Next()); err != nil {
			return err
		}
	}
	return nil
}
