package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"cnmsql.co/operator/e2e/lab/internal/image"
	"cnmsql.co/operator/e2e/lab/internal/inside"
)

// load imports archives into every running node, and keeps them for nodes that
// start later.
func load(ctx context.Context, l lab, args []string) error {
	s, err := l.status(ctx)
	if err != nil {
		return err
	}
	for _, path := range args {
		tags, err := image.Tags(path)
		if err != nil {
			return err
		}
		kept := filepath.Join(l.dir.Loaded(), strings.NewReplacer("/", "_", ":", "_").Replace(tags[0])+".tar")
		if err := copyFile(path, kept); err != nil {
			return fmt.Errorf("keep image %s: %w", path, err)
		}
		names, err := l.importEverywhere(ctx, s, kept)
		if err != nil {
			return err
		}
		fmt.Printf("loaded %s into %s\n", strings.Join(tags, ", "), strings.Join(names, ", "))
	}
	return nil
}

// importEverywhere imports an archive into all running nodes at once.
func (l lab) importEverywhere(ctx context.Context, s inside.Status, archive string) (names []string, err error) {
	var wg sync.WaitGroup
	errs := make([]error, len(s.Nodes))
	for i, n := range s.Nodes {
		if n.PID == 0 {
			continue
		}
		argv, err := l.enter(ctx, n.Name)
		if err != nil {
			return nil, err
		}
		names = append(names, n.Name)
		argv = append(append(argv, filepath.Join(l.dir.BinLink(), "ctr")), inside.ImportArgs(archive)...)
		wg.Go(func() {
			if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
				errs[i] = fmt.Errorf("import into %s: %w\n%s", n.Name, err, out)
			}
		})
	}
	wg.Wait()
	return names, errors.Join(errs...)
}

// copyFile replaces dest by a copy of source, or leaves it as it was.
func copyFile(source, dest string) (err error) {
	if err := os.MkdirAll(filepath.Dir(dest), 0o755); err != nil {
		return err
	}
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(dest + ".partial")
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(err, out.Close(), os.Remove(out.Name()))
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Rename(out.Name(), dest)
}

// labels collects --label K=V.
type labels map[string]string

func (l labels) String() string { return "" }

func (l labels) Set(s string) error {
	k, v, ok := strings.Cut(s, "=")
	if !ok || k == "" {
		return errors.New("want KEY=VALUE")
	}
	l[k] = v
	return nil
}

// imageSpec reads the arguments of `lab image`.
func imageSpec(args []string) (out string, s image.Spec, err error) {
	fs := flag.NewFlagSet("lab image", flag.ContinueOnError)
	s.Labels = labels{}
	fs.StringVar(&s.User, "user", "", "UID or UID:GID that the image runs as")
	fs.Var(labels(s.Labels), "label", "KEY=VALUE, may be given more than once")
	if err := fs.Parse(args); err != nil {
		return "", s, err
	}
	a := fs.Args()
	if len(a) < 3 {
		return "", s, fmt.Errorf("%w: lab image [flags] OUT.tar TAG ENTRYPOINT DEST=SRC...", errUsage)
	}
	if !strings.Contains(a[1], ":") {
		return "", s, fmt.Errorf("%w: %q has no tag behind a colon", errUsage, a[1])
	}
	s.Tags, s.Entrypoint = []string{a[1]}, strings.Fields(a[2])
	for _, arg := range a[3:] {
		f, err := image.ParseFile(arg)
		if err != nil {
			return "", s, fmt.Errorf("%w: %w", errUsage, err)
		}
		s.Files = append(s.Files, f)
	}
	return a[0], s, nil
}

func imageCommand(_ context.Context, _ lab, args []string) error {
	out, s, err := imageSpec(args)
	if err != nil {
		return err
	}
	return image.Write(out, s)
}
