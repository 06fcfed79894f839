// Command instance is the instance manager: process 1 of an instance's container. It provisions and runs the
// server, and gives it its role.
//
//	instance install PATH   copy this program to PATH
//	instance run            be the instance manager, configured by the environment
//	instance watchdog       kill the server when the manager, which starts this, stands still
//	instance version        print the version
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"k8s.io/client-go/rest"

	"cnmsql.co/operator/instance/manager"
	"cnmsql.co/operator/instance/watchdog"
)

// version is set when the program is built.
var version = ""

func main() {
	if err := command(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "instance:", err)
		os.Exit(1)
	}
}

func command(args []string, out io.Writer) error {
	switch {
	case len(args) == 2 && args[0] == "install":
		return install(args[1])
	case len(args) == 1 && args[0] == "run":
		// Before anything else: a signal that comes early must not be lost.
		signals := make(chan os.Signal, 2)
		signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
		return run(signals)
	case len(args) == 1 && args[0] == "watchdog":
		board, err := watchdog.OpenBoard(os.NewFile(3, "board"))
		if err != nil {
			return err
		}
		return watchdog.Run(board, os.Stderr)
	case len(args) == 1 && args[0] == "version":
		_, err := fmt.Fprintln(out, managerVersion())
		return err
	}
	return fmt.Errorf("usage: instance install PATH | run | watchdog | version")
}

// run is the instance manager of this container.
func run(signals <-chan os.Signal) error {
	config, level, err := environment(os.Getenv)
	if err != nil {
		return err
	}
	kubernetes, err := rest.InClusterConfig()
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	return manager.Run(config, kubernetes, signals, newLogger(level, os.Stdout).WithValues("instance", config.Instance))
}

func managerVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// install copies this program to path, which appears whole or not at all.
func install(path string) (err error) {
	source, err := os.Open("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("opening the program: %w", err)
	}
	defer func() { _ = source.Close() }()
	target, err := os.CreateTemp(filepath.Dir(path), ".instance-*")
	if err != nil {
		return fmt.Errorf("installing to %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = target.Close()
			_ = os.Remove(target.Name())
		}
	}()
	if _, err = io.Copy(target, source); err != nil {
		return fmt.Errorf("installing to %s: %w", path, err)
	}
	if err = target.Chmod(0o755); err != nil {
		return fmt.Errorf("installing to %s: %w", path, err)
	}
	if err = target.Close(); err != nil {
		return fmt.Errorf("installing to %s: %w", path, err)
	}
	if err = os.Rename(target.Name(), path); err != nil {
		return fmt.Errorf("installing to %s: %w", path, err)
	}
	return nil
}
