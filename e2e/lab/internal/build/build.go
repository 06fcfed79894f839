package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"cnmsql.co/operator/e2e/lab/internal/image"
)

// Options say where a build reads and writes.
type Options struct {
	// Source is the directory of the lab's sources, that of components/ and mysql/.
	Source string
	// Cache is the directory of all results.
	Cache string
	// RefreshMySQL asks Debian for a newer MySQL than the one in the cache.
	RefreshMySQL bool
	// Prune removes results that this build did not use.
	Prune bool
	// Say reports a step that took some time.
	Say func(format string, args ...any)
}

// Result is what a lab runs from. All paths are absolute.
type Result struct {
	// Bin holds the programs, Images the archives.
	Bin, Images string
	// MySQLRoot is the unpacked root filesystem; MySQLVersion is such as 9.7.4-2.
	MySQLRoot, MySQLVersion string
}

type builder struct {
	Options
	cache cache
	goVer string
}

// Run brings the cache up to date and says where everything is. When nothing
// has changed it only hashes the sources.
func Run(ctx context.Context, o Options) (Result, error) {
	b, unlock, err := open(ctx, o)
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	if err := install(ctx, o.Say, runtimePackages...); err != nil {
		return Result{}, err
	}
	res, err := b.mysql(ctx)
	if err != nil {
		return Result{}, err
	}
	texts := []string{imagesText(res.MySQLVersion)}
	var dirs []string
	for _, p := range parts {
		dir, err := b.part(ctx, p)
		if err != nil {
			return Result{}, fmt.Errorf("build %s: %w", p.name, err)
		}
		dirs, texts = append(dirs, dir), append(texts, filepath.Base(dir))
	}
	res, err = b.assemble(res, dirs, texts)
	if err == nil && o.Prune {
		err = b.cache.prune(append(dirs, filepath.Dir(res.MySQLRoot), filepath.Dir(res.Bin)), o.Say)
	}
	return res, err
}

// MySQL brings only the MySQL root filesystem up to date.
func MySQL(ctx context.Context, o Options) (Result, error) {
	b, unlock, err := open(ctx, o)
	if err != nil {
		return Result{}, err
	}
	defer unlock()
	return b.mysql(ctx)
}

func open(ctx context.Context, o Options) (*builder, func(), error) {
	b := &builder{Options: o, cache: cache{o.Cache}}
	c := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	c.Dir = filepath.Join(o.Source, "components", "kubernetes")
	out, err := c.Output()
	if err != nil {
		return nil, nil, fmt.Errorf("ask go for its version: %w", err)
	}
	b.goVer = strings.TrimSpace(string(out))
	unlock, err := b.cache.lock(o.Say)
	return b, unlock, err
}

// timed runs a step and reports how long it took.
func (b *builder) timed(what string, step func() error) error {
	b.Say("%s ...", what)
	t := time.Now()
	if err := step(); err != nil {
		return err
	}
	b.Say("%s: done in %.1f s", what, time.Since(t).Seconds())
	return nil
}

// part builds the programs of a module unless the cache has them.
func (b *builder) part(ctx context.Context, p part) (string, error) {
	src := filepath.Join(b.Source, "components", p.name)
	k, err := key(os.DirFS(src), b.goVer, p.text())
	if err != nil {
		return "", err
	}
	kind := "parts/" + p.name
	if b.cache.has(kind, k) {
		return b.cache.path(kind, k), nil
	}
	if err := install(ctx, b.Say, p.packages...); err != nil {
		return "", err
	}
	err = b.cache.put(kind, k, func(dir string) error {
		for _, g := range p.programs {
			if err := b.timed(p.name+": "+g.out, func() error { return b.compile(ctx, src, p, g, dir) }); err != nil {
				return err
			}
		}
		return nil
	})
	return b.cache.path(kind, k), err
}

func (b *builder) compile(ctx context.Context, src string, p part, g program, dir string) error {
	c := exec.CommandContext(ctx, "go", g.args(dir)...)
	c.Dir = src
	c.Env = append(os.Environ(), p.env()...)
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // it must not write after the cache has a new owner
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s: %w\n%s", g.pkg, err, out)
	}
	return nil
}

// mysql makes the root filesystem unless the cache has one by the same script.
func (b *builder) mysql(ctx context.Context) (Result, error) {
	src := filepath.Join(b.Source, "mysql")
	k, err := key(os.DirFS(src))
	if err != nil {
		return Result{}, err
	}
	if !b.cache.has("mysql", k) || b.RefreshMySQL {
		if err := install(ctx, b.Say, mysqlPackages...); err != nil {
			return Result{}, err
		}
		err := b.cache.put("mysql", k, func(dir string) error {
			return b.timed("MySQL from Debian's packages", func() error {
				if out, err := exec.CommandContext(ctx, filepath.Join(src, "rootfs.sh"), dir).CombinedOutput(); err != nil {
					return fmt.Errorf("make the MySQL root filesystem: %w\n%s", err, out)
				}
				return nil
			})
		})
		if err != nil {
			return Result{}, err
		}
	}
	dir := b.cache.path("mysql", k)
	v, err := os.ReadFile(filepath.Join(dir, "version"))
	if err != nil {
		return Result{}, fmt.Errorf("read MySQL's version: %w", err)
	}
	return Result{MySQLRoot: filepath.Join(dir, "rootfs"), MySQLVersion: strings.TrimSpace(string(v))}, nil
}

// assemble makes the one directory that a lab runs from: all programs, linked,
// and the images made from them.
func (b *builder) assemble(res Result, dirs, texts []string) (Result, error) {
	k, err := key(os.DirFS(filepath.Join(b.Source, "mysql")), texts...)
	if err != nil {
		return Result{}, err
	}
	out := b.cache.path("lab", k)
	res.Bin, res.Images = filepath.Join(out, "bin"), filepath.Join(out, "images")
	if b.cache.has("lab", k) {
		return res, nil
	}
	return res, b.cache.put("lab", k, func(dir string) error {
		bin, imgs := filepath.Join(dir, "bin"), filepath.Join(dir, "images")
		if err := errors.Join(os.MkdirAll(filepath.Join(bin, "cni"), 0o755), os.Mkdir(imgs, 0o755)); err != nil {
			return fmt.Errorf("make the lab's directory: %w", err)
		}
		for i, p := range parts {
			for _, g := range p.programs {
				if err := os.Link(filepath.Join(dirs[i], g.out), filepath.Join(bin, g.out)); err != nil {
					return fmt.Errorf("link %s: %w", g.out, err)
				}
			}
		}
		return b.writeImages(imgs, images(sources{bin: bin, mysqlRoot: res.MySQLRoot, mysqlVersion: res.MySQLVersion}))
	})
}

func (b *builder) writeImages(dir string, specs map[string]image.Spec) error {
	var names []string
	for n := range specs {
		names = append(names, n)
	}
	slices.Sort(names)
	return b.timed(fmt.Sprintf("%d images", len(names)), func() error {
		for _, n := range names {
			if err := image.Write(filepath.Join(dir, n), specs[n]); err != nil {
				return err
			}
		}
		return nil
	})
}
