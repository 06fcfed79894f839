package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"cnmsql.co/operator/e2e/lab/internal/build"
)

// reporter prints lines with the time since it was made.
func reporter() func(string, ...any) {
	t := time.Now()
	return func(format string, args ...any) {
		fmt.Printf("%7.1f s  %s\n", time.Since(t).Seconds(), fmt.Sprintf(format, args...))
	}
}

// flags makes a flag set whose errors are returned and whose help is one line.
func flags(name string) *flag.FlagSet {
	fs := flag.NewFlagSet("lab "+name, flag.ContinueOnError)
	return fs
}

func (l lab) buildOptions(say func(string, ...any)) build.Options {
	return build.Options{Source: l.source, Cache: l.cache, Say: say}
}

func buildCommand(ctx context.Context, l lab, args []string) error {
	fs := flags("build")
	refresh := fs.Bool("refresh-mysql", false, "take a newer MySQL if Debian has one")
	prune := fs.Bool("prune", false, "then remove from the cache what this checkout does not use")
	if err := fs.Parse(args); err != nil {
		return err
	}
	say := reporter()
	o := l.buildOptions(say)
	o.RefreshMySQL, o.Prune = *refresh, *prune
	r, err := build.Run(ctx, o)
	if err != nil {
		return err
	}
	say("programs in %s", r.Bin)
	say("images in   %s", r.Images)
	say("MySQL %s in %s", r.MySQLVersion, r.MySQLRoot)
	return nil
}

func mysqlRoot(ctx context.Context, l lab, _ []string) error {
	t := time.Now()
	o := l.buildOptions(func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%7.1f s  %s\n", time.Since(t).Seconds(), fmt.Sprintf(format, args...))
	})
	r, err := build.MySQL(ctx, o)
	if err != nil {
		return err
	}
	fmt.Println(r.MySQLRoot)
	return nil
}
