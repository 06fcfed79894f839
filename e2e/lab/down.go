package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cnmsql.co/operator/e2e/lab/internal/config"
	"cnmsql.co/operator/e2e/lab/internal/host"
	"cnmsql.co/operator/e2e/lab/internal/proc"
)

// endLimit is how long a killed process may take to be gone.
const endLimit = 30 * time.Second

func down(_ context.Context, l lab, args []string) error {
	fs := flags("down")
	logs := fs.String("logs", "", "copy the logs to this directory first")
	if err := fs.Parse(args); err != nil {
		return err
	}
	t := time.Now()
	if *logs != "" {
		if err := l.copyLogs(*logs); err != nil {
			return err
		}
	}
	if err := l.clean(func(f string, a ...any) { fmt.Printf(f+"\n", a...) }); err != nil {
		return err
	}
	fmt.Printf("down after %.1f s\n", time.Since(t).Seconds())
	return nil
}

// clean ends the lab's processes and gives back everything it took. It works
// whatever state the lab is in, and every part of it is tried.
func (l lab) clean(say func(string, ...any)) error {
	var errs []error
	for _, p := range []struct{ name, file string }{{"forwarder", l.dir.ForwarderID()}, {"root", l.dir.RootID()}} {
		id, err := proc.ReadIdentity(p.file)
		if err != nil {
			say("%s: %v; its processes are looked for in their cgroup", p.name, err)
			continue
		}
		errs = append(errs, id.End(endLimit))
	}
	errs = append(errs, host.KillAll(endLimit))
	changed, err := host.RestoreSysctls(l.dir.Sysctls())
	if len(changed) > 0 {
		say("restored %s", strings.Join(changed, ", "))
	}
	errs = append(errs, err, host.RemoveCgroup(config.Cgroup, 10*time.Second))
	if err := errors.Join(append(errs, host.UnmountBelow(string(l.dir)))...); err != nil {
		return fmt.Errorf("%w\nnot all of the lab could be ended, so %s stays", err, l.dir)
	}
	if err := os.RemoveAll(string(l.dir)); err != nil {
		return fmt.Errorf("remove the state directory: %w", err)
	}
	return nil
}

// copyLogs copies the logs of the control plane and of every node.
func (l lab) copyLogs(to string) error {
	dirs, err := filepath.Glob(l.dir.Path("*", "log"))
	if err != nil {
		return fmt.Errorf("find logs: %w", err)
	}
	for _, d := range append(dirs, l.dir.Path("log")) {
		name := filepath.Base(filepath.Dir(d))
		if d == l.dir.Path("log") {
			name = "cp"
		}
		if _, err := os.Stat(d); err != nil {
			continue
		}
		dest := filepath.Join(to, name)
		if err := os.RemoveAll(dest); err != nil {
			return fmt.Errorf("replace older logs: %w", err)
		}
		if err := os.CopyFS(dest, os.DirFS(d)); err != nil {
			return fmt.Errorf("copy logs: %w", err)
		}
	}
	return nil
}
