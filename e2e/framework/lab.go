package framework

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cnmsql.co/operator/e2e/lab/dial"
)

// Lab is the Kubernetes cluster on this machine.
type Lab struct {
	// Script is the path of e2e/lab/lab.
	Script string
}

// Up starts the lab unless it is up; progress gets its lines, lab up the flags. It tells whether it was started.
func (l Lab) Up(ctx context.Context, nodes int, progress io.Writer, flags ...string) (started bool, err error) {
	if _, err := run(ctx, nil, l.Script, "status"); err == nil {
		return false, nil
	}
	args := append([]string{"up", "--nodes", strconv.Itoa(nodes)}, flags...)
	if err := stream(ctx, nil, progress, progress, l.Script, args...); err != nil {
		return false, fmt.Errorf("starting the lab: %w", err)
	}
	return true, nil
}

// During runs something on the lab. One that was not up is started with the flags of lab up, and ended afterwards; its
// logs are then kept in a folder if there was an error.
func (l Lab) During(ctx context.Context, nodes int, logs string, run func() error, flags ...string) (err error) {
	started, err := l.Up(ctx, nodes, os.Stderr, flags...)
	if started {
		defer func() {
			kept := ""
			if err != nil {
				kept = logs
			}
			err = errors.Join(err, l.Down(context.WithoutCancel(ctx), kept))
		}()
	}
	if err != nil {
		return err
	}
	return run()
}

// Down ends the lab; its logs are kept in a folder unless that is empty.
func (l Lab) Down(ctx context.Context, logs string) error {
	args := []string{"down"}
	if logs != "" {
		args = append(args, "--logs", logs)
	}
	_, err := run(ctx, nil, l.Script, args...)
	return err
}

// Kubeconfig is the path of one that works on this machine.
func (l Lab) Kubeconfig(ctx context.Context) (string, error) {
	out, err := run(ctx, nil, l.Script, "kubeconfig")
	return strings.TrimSpace(out), err
}

// Load imports image archives into every node.
func (l Lab) Load(ctx context.Context, archives ...string) error {
	_, err := run(ctx, nil, l.Script, append([]string{"load"}, archives...)...)
	return err
}

// Node does one of cut, heal, kill and start to a node.
func (l Lab) Node(ctx context.Context, verb, node string) error {
	_, err := run(ctx, nil, l.Script, verb, node)
	return err
}

// CutFrom keeps a node from one side: api or peers. Node "heal" undoes it.
func (l Lab) CutFrom(ctx context.Context, node, side string) error {
	_, err := run(ctx, nil, l.Script, "cut", node, "--from", side)
	return err
}

// Exec runs a command in the namespaces of a node.
func (l Lab) Exec(ctx context.Context, node string, command ...string) (string, error) {
	return run(ctx, nil, l.Script, append([]string{"exec", node}, command...)...)
}

// dial opens connections to addresses inside.
func (l Lab) dial() dial.Lab { return dial.Default() }

// root is the checkout that the script belongs to.
func (l Lab) root() string { return filepath.Dir(filepath.Dir(filepath.Dir(l.Script))) }
