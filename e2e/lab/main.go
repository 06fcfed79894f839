// Command lab runs a small real Kubernetes cluster on this machine, without a
// container engine: `lab help` lists what it can do. It is called through the
// script of the same name, which builds it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"cnmsql.co/operator/e2e/lab/internal/inside"
	"cnmsql.co/operator/e2e/lab/internal/state"
)

// lab is what every command works on.
type lab struct {
	dir state.Dir
	// source is the directory of the lab's sources, cache that of what is built.
	source, cache string
}

// command is one subcommand. min and max limit its arguments; max < 0 is none.
type command struct {
	name, args, help string
	min, max         int
	run              func(context.Context, lab, []string) error
}

// errUsage is wrapped by errors that a look at the command's usage explains.
var errUsage = errors.New("usage")

func main() {
	if len(os.Args) > 1 && isInit(os.Args[1]) {
		fmt.Fprintln(os.Stderr, "lab:", initProcess(os.Args[1:]))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := dispatch(ctx, os.Args[1:])
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		return printHelp(args)
	}
	c, err := find(args[0])
	if err != nil {
		return err
	}
	if n := len(args) - 1; n < c.min || (c.max >= 0 && n > c.max) {
		return fmt.Errorf("%w: lab %s %s", errUsage, c.name, c.args)
	}
	if err := mayRun(c.name, os.Geteuid()); err != nil {
		return err
	}
	l, err := open()
	if err != nil {
		return err
	}
	return c.run(ctx, l, args[1:])
}

// mayRun says early what would fail late and in other words.
func mayRun(name string, user int) error {
	switch name {
	case "build", "up", "down":
		if user != 0 {
			return fmt.Errorf("lab %s makes network namespaces, mounts and control groups and installs Debian packages: run it as root", name)
		}
	}
	return nil
}

func find(name string) (command, error) {
	for _, c := range commands() {
		if c.name == name {
			return c, nil
		}
	}
	return command{}, fmt.Errorf("%w: no command %q; lab help lists them", errUsage, name)
}

func open() (lab, error) {
	d, err := state.Open(os.Getenv("LAB_DIR"))
	if err != nil {
		return lab{}, err
	}
	l := lab{dir: d, source: os.Getenv("LAB_SOURCE"), cache: os.Getenv("CNMSQL_CACHE")}
	if l.source == "" || l.cache == "" {
		return lab{}, errors.New("call the script e2e/lab/lab: it says where sources and cache are")
	}
	if l.cache, err = filepath.Abs(l.cache); err != nil {
		return lab{}, fmt.Errorf("find the cache: %w", err)
	}
	return l, nil
}

// The processes that lab starts from its own program.
const (
	initRoot      = "init-root"
	initNode      = "init-node"
	initForwarder = "init-forwarder"
)

func isInit(name string) bool { return name == initRoot || name == initNode || name == initForwarder }

// initProcess runs one of the lab's own processes. It returns only with an error.
func initProcess(args []string) error {
	dir := state.Dir(args[1])
	switch args[0] {
	case initRoot:
		var nodes int
		if _, err := fmt.Sscan(args[2], &nodes); err != nil {
			return err
		}
		return inside.Root(dir, nodes)
	case initNode:
		return inside.Node(dir, args[2], args[3])
	default:
		return runForwarder(dir)
	}
}
