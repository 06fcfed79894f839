package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"cnmsql.co/operator/e2e/lab/internal/build"
	"cnmsql.co/operator/e2e/lab/internal/config"
	"cnmsql.co/operator/e2e/lab/internal/host"
	"cnmsql.co/operator/e2e/lab/internal/inside"
	"cnmsql.co/operator/e2e/lab/internal/pki"
	"cnmsql.co/operator/e2e/lab/internal/proc"
	"cnmsql.co/operator/e2e/lab/internal/state"
)

// upOptions are the flags of up.
type upOptions struct {
	nodes       int
	certManager bool
	// volumes is how large a node's file system for volumes is, 0 if it is a directory of this machine's disk.
	volumes int64
	// restartDelay is the longest time between two starts of a container; 0 is Kubernetes' own.
	restartDelay time.Duration
	// proxySync is the least time between two changes of a kube-proxy; 0 is Kubernetes' own.
	proxySync time.Duration
}

func parseUp(args []string) (upOptions, error) {
	fs := flags("up")
	nodes := fs.Int("nodes", 1, fmt.Sprintf("number of nodes, 1 to %d", config.MaxNodes))
	without := fs.Bool("without-cert-manager", false, "leave cert-manager out")
	volumes := fs.Int64("volumes", 0, "`MiB` that the volumes of a node have room for together; 0 is as much as this machine has")
	delay := fs.Duration("restart-delay", 0, "the longest `time` before a container that keeps ending is started again, from 1s to 300s; 0 is Kubernetes' own")
	sync := fs.Duration("proxy-sync", 0, "the least `time` between two changes that a kube-proxy makes, up to 10s; 0 is Kubernetes' own second")
	if err := fs.Parse(args); err != nil {
		return upOptions{}, err
	}
	if *sync < 0 || *sync > 10*time.Second {
		return upOptions{}, fmt.Errorf("%w: --proxy-sync is 0 to 10s", errUsage)
	}
	if *volumes < 0 || *delay < 0 || *delay > 300*time.Second || (*delay > 0 && *delay < time.Second) {
		return upOptions{}, fmt.Errorf("%w: --volumes is 0 or more, --restart-delay 0 or 1s to 300s", errUsage)
	}
	if fs.NArg() > 0 {
		return upOptions{}, fmt.Errorf("%w: lab up takes flags only, not %q", errUsage, fs.Arg(0))
	}
	if *nodes < 1 || *nodes > config.MaxNodes {
		return upOptions{}, fmt.Errorf("%w: --nodes is 1 to %d", errUsage, config.MaxNodes)
	}
	return upOptions{nodes: *nodes, certManager: !*without, volumes: *volumes, restartDelay: *delay, proxySync: *sync}, nil
}

func up(ctx context.Context, l lab, args []string) error {
	o, err := parseUp(args)
	if err != nil {
		return err
	}
	say := reporter()
	if err := l.makeRoom(say); err != nil {
		return err
	}
	built, err := build.Run(ctx, l.buildOptions(say))
	if err != nil {
		return err
	}
	ln, err := listenLocal(ctx, "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer ln.Close()
	if err := l.prepare(o, built, ln.Addr()); err != nil {
		return fmt.Errorf("prepare the lab: %w", err)
	}
	say("keys and configuration written")
	if err := l.startRoot(o.nodes); err != nil {
		return err
	}
	if err := l.settle(ctx, o, ln, say); err != nil {
		return fmt.Errorf("%w\nthe lab is not ready: its logs are in %s and %s; lab down cleans up",
			err, l.dir.Path("log"), l.dir.Path("n1", "log"))
	}
	say("ready: export KUBECONFIG=%s", l.dir.Kubeconfig())
	return nil
}

// makeRoom refuses a second lab and clears what a crashed one left.
func (l lab) makeRoom(say func(string, ...any)) error {
	if pid, err := l.rootPID(); err == nil {
		return fmt.Errorf("a lab is up already, pid %d; lab down ends it", pid)
	}
	if _, err := os.Stat(l.dir.RootID()); err == nil {
		say("clearing what an earlier lab left in %s", l.dir)
		return l.clean(say)
	}
	if pids := host.Processes(); len(pids) > 0 {
		return fmt.Errorf("another lab runs on this machine, with another LAB_DIR (process %d)", pids[0])
	}
	return nil
}

// prepare writes everything that the lab's processes read.
func (l lab) prepare(o upOptions, built build.Result, outside net.Addr) error {
	if err := os.MkdirAll(string(l.dir), 0o700); err != nil {
		return err
	}
	if err := host.SaveSysctls(l.dir.Sysctls()); err != nil {
		return err
	}
	for link, to := range map[string]string{l.dir.BinLink(): built.Bin, l.dir.ImagesLink(): built.Images} {
		if err := errors.Join(os.RemoveAll(link), os.Symlink(to, link)); err != nil {
			return err
		}
	}
	files, err := pki.Files(time.Now(), o.nodes, outside.String())
	if err != nil {
		return err
	}
	for n := config.Node(1); int(n) <= o.nodes; n++ {
		fs, err := config.Files(config.Places{State: string(l.dir), Bin: l.dir.BinLink(), RestartDelay: o.restartDelay, ProxySync: o.proxySync}, n)
		if err != nil {
			return err
		}
		for name, b := range fs {
			if filepath.Ext(name) == ".conflist" {
				name = filepath.Join("cni", name)
			}
			files[filepath.Join(n.Name(), name)] = b
		}
	}
	for name, b := range files {
		if err := state.Write(l.dir.Path(name), b, 0o600); err != nil {
			return err
		}
	}
	return l.limitVolumes(o)
}

// limitVolumes makes a file system for each node's volumes.
func (l lab) limitVolumes(o upOptions) error {
	if o.volumes == 0 {
		return nil
	}
	for n := config.Node(1); int(n) <= o.nodes; n++ {
		image := l.dir.Path(n.Name(), inside.VolumesImage)
		if err := os.WriteFile(image, nil, 0o600); err != nil {
			return err
		}
		if err := os.Truncate(image, o.volumes<<20); err != nil {
			return err
		}
		if out, err := exec.Command("mkfs.ext4", "-q", "-m", "0", image).CombinedOutput(); err != nil { //nolint:noctx // short
			return fmt.Errorf("make a file system for the volumes of %s: %w: %s", n.Name(), err, out)
		}
	}
	return nil
}

func (l lab) startRoot(nodes int) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start the root: %w", err)
	}
	if err := os.MkdirAll(l.dir.Path("log"), 0o755); err != nil {
		return fmt.Errorf("start the root: %w", err)
	}
	log, err := os.Create(l.dir.Log("root"))
	if err != nil {
		return fmt.Errorf("start the root: %w", err)
	}
	defer log.Close()
	c := exec.Command(self, initRoot, string(l.dir), strconv.Itoa(nodes)) //nolint:noctx // it outlives this command
	c.Stdout, c.Stderr = log, log
	c.Env = []string{"PATH=" + l.dir.BinLink() + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"}
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: inside.Namespaces}
	return l.launch(c, l.dir.RootID())
}

// settle brings everything up that runs in the cluster, as far as possible at
// the same time, and waits until it works.
func (l lab) settle(ctx context.Context, o upOptions, ln *net.TCPListener, say func(string, ...any)) error {
	a, err := l.api()
	if err != nil {
		return err
	}
	id, err := proc.ReadIdentity(l.dir.RootID())
	if err != nil {
		return err
	}
	w := &waiter{say: say, alive: id.Alive}
	if err := w.until(ctx, "control socket", time.Minute, func(context.Context) error { _, err := os.Stat(l.dir.Socket()); return err }); err != nil {
		return err
	}
	if err := l.startForwarder(ln); err != nil {
		return err
	}
	if err := w.until(ctx, "apiserver ready", 3*time.Minute, func(ctx context.Context) error { return a.call(ctx, "/readyz", "", nil) }); err != nil {
		return err
	}
	if err := l.applyAddons(ctx, o.certManager); err != nil {
		return err
	}
	say("addons applied")
	return w.all(ctx, l.conditions(a, o))
}

func (l lab) applyAddons(ctx context.Context, certManager bool) error {
	argv := append(l.kubectl(), "apply", "--server-side", "--validate=ignore")
	names := []string{"coredns.yaml", "local-path.yaml"}
	if certManager {
		names = append(names, "cert-manager.yaml")
	}
	for _, n := range names {
		argv = append(argv, "-f", filepath.Join(l.source, "manifests", n))
	}
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("apply the addons: %w\n%s", err, out)
	}
	return nil
}

// condition is something that up waits for.
type condition struct {
	what string
	met  func(context.Context) error
}

func (l lab) conditions(a *api, o upOptions) []condition {
	cs := []condition{
		{fmt.Sprintf("%d nodes Ready", o.nodes), func(ctx context.Context) error { return a.readyNodes(ctx, o.nodes) }},
		{"default service account", func(ctx context.Context) error {
			return a.call(ctx, "/api/v1/namespaces/default/serviceaccounts/default", "", nil)
		}},
		{"DNS available", func(ctx context.Context) error { return a.deploymentAvailable(ctx, "kube-system", "coredns") }},
		{"volumes available", func(ctx context.Context) error {
			return a.deploymentAvailable(ctx, "local-path-storage", "local-path-provisioner")
		}},
		{"images imported", func(context.Context) error { return l.imagesImported(o.nodes) }},
	}
	if o.certManager {
		cs = append(cs, condition{"cert-manager serves", a.certManagerServes})
	}
	return cs
}

func (l lab) imagesImported(nodes int) error {
	for n := config.Node(1); int(n) <= nodes; n++ {
		if _, err := os.Stat(l.dir.Path(n.Name(), inside.ImagesDone)); err != nil {
			return fmt.Errorf("%s has not imported all images", n.Name())
		}
	}
	return nil
}

// waiter waits for conditions as long as the root lives.
type waiter struct {
	mu    sync.Mutex
	say   func(string, ...any)
	alive func() bool
}

// until asks again and again until met returns nil. What it said last is the
// reason when limit is over.
func (w *waiter) until(ctx context.Context, what string, limit time.Duration, met func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := met(ctx)
		if ctx.Err() == nil || last == nil {
			last = err // one that only says that time is over explains nothing
		}
		if err == nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.say("%s", what)
			return nil
		}
		if !w.alive() {
			return fmt.Errorf("the lab ended while it was waited for: %s", what)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %v for: %s: %w", limit, what, last)
		case <-tick.C:
		}
	}
}

// all waits for all conditions at once.
func (w *waiter) all(ctx context.Context, cs []condition) error {
	errs := make([]error, len(cs))
	var wg sync.WaitGroup
	for i, c := range cs {
		wg.Go(func() { errs[i] = w.until(ctx, c.what, 5*time.Minute, c.met) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
