// Command operator runs the controllers of Clusters.
//
// Everything that configures it is a flag; some have an environment variable as their default, see -help.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
)

// version is set when the program is built.
var version = ""

// config is what the flags and the environment say.
type config struct {
	leaderElect             bool
	leaderElectionNamespace string
	metricsAddress          string
	metricsCertDir          string
	probeAddress            string
	operatorImage           string
	namespaces              []string
	concurrency             int
	logLevel                string
}

func main() {
	if err := command(os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func command(args []string, getenv func(string) string, out io.Writer) error {
	if len(args) == 1 && args[0] == "version" {
		_, err := fmt.Fprintln(out, programVersion())
		return err
	}
	c, err := parse(args, getenv)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	return run(ctrl.SetupSignalHandler(), c)
}

// parse reads flags and the environment.
func parse(args []string, getenv func(string) string) (config, error) {
	var c config
	var namespaces string
	f := flag.NewFlagSet("operator", flag.ContinueOnError)
	f.BoolVar(&c.leaderElect, "leader-elect", true, "let only one of several operators work")
	f.StringVar(&c.leaderElectionNamespace, "leader-election-namespace", getenv("POD_NAMESPACE"), "`namespace` of the Lease for that ($POD_NAMESPACE)")
	f.StringVar(&c.metricsAddress, "metrics-bind-address", ":8080", "`address` for metrics; 0 for none")
	f.StringVar(&c.metricsCertDir, "metrics-cert-dir", "", "`directory` with tls.crt and tls.key, which may change, to serve metrics over HTTPS; empty for HTTP")
	f.StringVar(&c.probeAddress, "health-probe-bind-address", ":8081", "`address` for /healthz and /readyz; 0 for none")
	f.StringVar(&c.operatorImage, "operator-image", getenv("OPERATOR_IMAGE"), "`image` with the instance manager, for the init container of every Pod ($OPERATOR_IMAGE)")
	f.StringVar(&namespaces, "watch-namespace", getenv("WATCH_NAMESPACE"), "`namespaces` to work in, separated by commas; empty for all ($WATCH_NAMESPACE)")
	f.IntVar(&c.concurrency, "max-concurrent-reconciles", 8, "`number` of Clusters that each controller works on at once")
	f.StringVar(&c.logLevel, "log-level", "info", "error, info or debug")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	for n := range strings.SplitSeq(namespaces, ",") {
		if n = strings.TrimSpace(n); n != "" {
			c.namespaces = append(c.namespaces, n)
		}
	}
	switch {
	case f.NArg() > 0:
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case c.operatorImage == "":
		return c, errors.New("--operator-image or $OPERATOR_IMAGE is needed: the image that holds the instance manager")
	case c.concurrency < 1:
		return c, errors.New("--max-concurrent-reconciles must be at least 1")
	}
	return c, nil
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
