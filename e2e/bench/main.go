package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"cnmsql.co/operator/e2e/framework"
)

// options are what the flags say.
type options struct {
	archive string
	nodes   int
	runs    int
	trace   bool
	keep    bool
	ways    []string
	sides   []string
	results string
}

// What there is to choose from.
var (
	ways  = []string{"switchover", "kill", "delete", "oom", "container", "node"}
	sides = []string{"ours", "scripted", "gr", "gr-default"}
)

func main() {
	o := options{}
	flag.StringVar(&o.archive, "archive", "bin/operator.tar", "the `file` with the operator's image")
	flag.IntVar(&o.nodes, "nodes", 3, "how many nodes a lab gets that is made for this")
	flag.IntVar(&o.runs, "runs", 10, "how often each way is measured")
	flag.BoolVar(&o.trace, "trace", false, "print the timeline of the run of each way in which no server wrote for longest")
	flag.BoolVar(&o.keep, "keep", false, "use what an earlier run with -keep left (with the operator of that time), and leave it")
	chosenWays := flag.String("ways", strings.Join(ways, ","), "which `ways` to measure")
	chosenSides := flag.String("sides", strings.Join(sides, ","), "which `sides` to measure")
	flag.StringVar(&o.results, "results", "", "a `file` to which every result is added at once; the table has those of earlier runs, too")
	flag.Parse()
	o.ways, o.sides = strings.Split(*chosenWays, ","), strings.Split(*chosenSides, ",")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := errors.Join(allOf("way", o.ways, ways), allOf("side", o.sides, sides))
	if err == nil {
		err = start(ctx, o)
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "\nThe benchmark failed: %v\n", err)
		os.Exit(1)
	}
}

// allOf refuses what there is not: a misspelt name would measure nothing.
func allOf(what string, chosen, all []string) error {
	for _, name := range chosen {
		if !slices.Contains(all, name) {
			return fmt.Errorf("there is no %s %q: choose from %s", what, name, strings.Join(all, ", "))
		}
	}
	return nil
}

// start finds or makes the lab. One that it made, it ends.
func start(ctx context.Context, o options) error {
	root, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("finding the checkout: %w", err)
	}
	lab := framework.Lab{Script: filepath.Join(root, "e2e/lab/lab")}
	return lab.During(ctx, o.nodes, filepath.Join(root, "dist/lab-logs"), func() error {
		e, err := framework.Open(ctx, lab, filepath.Join(root, "bin"))
		if err != nil {
			return err
		}
		b := &bench{options: o, e: e, archive: filepath.Join(root, o.archive), out: os.Stdout, progress: os.Stderr}
		return b.run(ctx)
	})
}
