// Command kubectl-cnmsql is the kubectl plugin: put it into the PATH and call `kubectl cnmsql`.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	// Logins of managed Kubernetes offerings.
	_ "k8s.io/client-go/plugin/pkg/client/auth"

	"cnmsql.co/operator/plugin/cmd"
)

// version is set when the program is built.
var version = ""

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := cmd.New(cmd.Options{Version: programVersion(), Out: os.Stdout, Err: os.Stderr, In: os.Stdin, Now: time.Now}).ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
