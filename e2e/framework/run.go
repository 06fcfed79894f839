package framework

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// run executes a program and returns its output. An error quotes what it wrote to stderr.
func run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	var out, errs bytes.Buffer
	err := stream(ctx, env, &out, &errs, name, args...)
	if err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(errs.String()))
	}
	return out.String(), nil
}

// stream executes a program whose output is of interest while it runs.
func stream(ctx context.Context, env []string, out, errs io.Writer, name string, args ...string) error {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), env...)
	c.Stdout, c.Stderr = out, errs
	return c.Run()
}
