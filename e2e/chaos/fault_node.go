package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cnmsql.co/operator/e2e/framework"
)

// cut keeps a node from a side, or from everything.
type cut struct {
	lab        framework.Lab
	node, side string
}

func (c cut) begin(ctx context.Context) (string, error) {
	if c.side == "" {
		return c.node, c.lab.Node(ctx, "cut", c.node)
	}
	return c.node, c.lab.CutFrom(ctx, c.node, c.side)
}
func (c cut) heal(ctx context.Context) (string, error) { return "", c.lab.Node(ctx, "heal", c.node) }

// killNode ends everything on a node at once.
type killNode struct {
	lab  framework.Lab
	node string
}

func (k killNode) begin(ctx context.Context) (string, error) {
	return k.node, k.lab.Node(ctx, "kill", k.node)
}

func (k killNode) heal(ctx context.Context) (string, error) {
	err := k.lab.Node(ctx, "start", k.node)
	if err != nil && strings.Contains(err.Error(), "is running") {
		err = nil // it could not be killed
	}
	return "", err
}

// cordon lets nothing new be placed on a node.
type cordon struct {
	e    *framework.Environment
	node string
}

func (c cordon) begin(ctx context.Context) (string, error) {
	_, err := c.e.Kubectl(ctx, "cordon", c.node)
	return c.node, err
}

func (c cordon) heal(ctx context.Context) (string, error) {
	return "", framework.Await(ctx, "uncordoning "+c.node, healWithin, func(ctx context.Context) (bool, string, error) {
		_, err := c.e.Kubectl(ctx, "uncordon", c.node)
		return err == nil, "", err
	})
}

// fillDisk takes all room on the file system that a node's volumes share.
type fillDisk struct {
	lab     framework.Lab
	node    string
	limited bool
}

// filler is the file that does it.
const filler = "/var/lib/local-path/filler"

// errNoLimit is the answer on a lab whose volumes are directories on the machine's own disk, which is not filled.
var errNoLimit = errors.New("this lab's volumes have no disk of their own (lab up --volumes)")

func (f fillDisk) begin(ctx context.Context) (string, error) {
	if !f.limited {
		return "", errNoLimit
	}
	// The second command takes what is freed meanwhile. Both are meant to fail.
	out, err := f.lab.Exec(ctx, f.node, "sh", "-c", "fallocate -l 1T "+filler+" 2>/dev/null; dd if=/dev/zero of="+filler+".2 bs=4k 2>/dev/null; df --output=avail /var/lib/local-path | tail -1")
	return fmt.Sprintf("%s, %s KiB left", f.node, strings.TrimSpace(out)), err
}

// heal makes room. On a node that is dead just now it is tried until that is back.
func (f fillDisk) heal(ctx context.Context) (string, error) {
	if !f.limited {
		return "", nil
	}
	return "", framework.Await(ctx, "making room on "+f.node, healWithin, func(ctx context.Context) (bool, string, error) {
		_, err := f.lab.Exec(ctx, f.node, "rm", "-f", filler, filler+".2")
		return err == nil, "", err
	})
}
