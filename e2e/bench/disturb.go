package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// way is something that can be done to a primary.
type way struct {
	// prepare, if set, brings the side into a state in which it can be done. The writers have not begun.
	prepare func(ctx context.Context) error
	// do does it. other is an instance that is not the primary.
	do func(ctx context.Context, t *timeline, primary, other string) error
	// heal, if set, undoes it when another instance has the role and accepts writes.
	heal func(ctx context.Context, primary string) error
}

// doing is a way's part that needs the Pod alone.
func doing(end func(ctx context.Context, pod string) error) func(context.Context, *timeline, string, string) error {
	return func(ctx context.Context, _ *timeline, primary, _ string) error { return end(ctx, primary) }
}

func podKey(pod string) client.ObjectKey { return client.ObjectKey{Namespace: namespace, Name: pod} }

func (b *bench) killServer(ctx context.Context, pod string) error {
	return b.e.KillServer(ctx, podKey(pod))
}

func (b *bench) killContainer(ctx context.Context, pod string) error {
	return b.e.KillContainer(ctx, podKey(pod))
}

// deletePod is as a person does it: the Pod has its time to end in an orderly way.
func (b *bench) deletePod(ctx context.Context, pod string) error {
	_, err := b.e.Kubectl(ctx, "-n", namespace, "delete", "pod", pod, "--wait=false")
	return err
}

// nodeOf is where a Pod runs.
func (b *bench) nodeOf(ctx context.Context, pod string) (string, error) {
	p := &corev1.Pod{}
	if err := b.e.Client.Get(ctx, podKey(pod), p); err != nil {
		return "", fmt.Errorf("reading Pod %s: %w", pod, err)
	}
	return p.Spec.NodeName, nil
}

// nodeWay crashes the primary's node. The primary is first moved to one that nothing else depends on: a lost operator or
// a lost DNS is another experiment.
func (b *bench) nodeWay(instances []string, primary func(context.Context) (string, error), move func(ctx context.Context, primary, other string) error) way {
	lost := ""
	return way{
		prepare: func(ctx context.Context) error {
			now, err := primary(ctx)
			if err != nil {
				return err
			}
			to, err := b.alone(ctx, now, instances)
			if err != nil || to == now {
				return err
			}
			return move(ctx, now, to)
		},
		do: func(ctx context.Context, _ *timeline, primary, _ string) (err error) {
			if lost, err = b.nodeOf(ctx, primary); err != nil {
				return err
			}
			return b.e.Lab.Node(ctx, "kill", lost)
		},
		heal: func(ctx context.Context, _ string) error { return b.e.Lab.Node(ctx, "start", lost) },
	}
}

// alone is an instance on a node without the operator and without DNS, the present primary if it can be.
func (b *bench) alone(ctx context.Context, primary string, instances []string) (string, error) {
	needed := map[string]bool{}
	all := &corev1.PodList{}
	if err := b.e.Client.List(ctx, all); err != nil {
		return "", fmt.Errorf("listing Pods: %w", err)
	}
	for _, p := range all.Items {
		if p.Namespace == framework.OperatorNamespace || p.Namespace == "kube-system" {
			needed[p.Spec.NodeName] = true
		}
	}
	for _, name := range append([]string{primary}, instances...) {
		node, err := b.nodeOf(ctx, name)
		if err != nil {
			return "", err
		}
		if !needed[node] {
			return name, nil
		}
	}
	return "", fmt.Errorf("the operator or the cluster's DNS runs on every node with one of %s", strings.Join(instances, ", "))
}

// hungry touches 128 MiB once.
const hungry = "dd if=/dev/zero of=/dev/null bs=128M count=1"

// exhaustMemory lowers the limit of the container of a Pod to what its processes have, and asks for more in it, until the
// kernel ends the largest process: mysqld, and on a machine with cgroup v2 everything in the container with it.
func (b *bench) exhaustMemory(ctx context.Context, pod string) error {
	g, err := b.cgroup(ctx, pod)
	if err != nil {
		return err
	}
	before, err := g.kills(ctx)
	if err != nil {
		return err
	}
	if err := g.limit(ctx); err != nil {
		return err
	}
	_, fed := b.e.Kubectl(ctx, "-n", namespace, "exec", pod, "-c", "mysql", "--", "sh", "-c", hungry)
	if err := g.unlimit(ctx); err != nil {
		return err
	}
	after, err := g.kills(ctx)
	switch {
	case err != nil:
		return nil //nolint:nilerr // the container has ended, and its cgroup with it
	case after == before:
		return errors.Join(fmt.Errorf("the kernel ended nothing in %s", pod), fed)
	}
	return nil
}

// memory is the cgroup of a container.
type memory struct {
	b *bench
	// node is where it is, in dir. Files and words in them differ between the versions of cgroups.
	node, dir           string
	max, unlimited      string
	anonymous, killFile string
}

func (b *bench) cgroup(ctx context.Context, pod string) (*memory, error) {
	p := &corev1.Pod{}
	if err := b.e.Client.Get(ctx, podKey(pod), p); err != nil {
		return nil, fmt.Errorf("reading Pod %s: %w", pod, err)
	}
	for _, s := range p.Status.ContainerStatuses {
		id, ok := strings.CutPrefix(s.ContainerID, "containerd://")
		if !ok || s.Name != "mysql" {
			continue
		}
		out, err := b.e.Lab.Exec(ctx, p.Spec.NodeName, "sh", "-c", `for d in /sys/fs/cgroup/memory /sys/fs/cgroup; do [ -d $d ] && find $d -name "$1" && break; done`, "sh", id)
		if err != nil {
			return nil, fmt.Errorf("looking for the cgroup of %s: %w", pod, err)
		}
		dir := strings.TrimSpace(out)
		switch {
		case dir == "":
		case strings.HasPrefix(dir, "/sys/fs/cgroup/memory/"):
			return &memory{b, p.Spec.NodeName, dir, "memory.limit_in_bytes", "-1", "rss", "memory.oom_control"}, nil
		default:
			return &memory{b, p.Spec.NodeName, dir, "memory.max", "max", "anon", "memory.events"}, nil
		}
	}
	return nil, fmt.Errorf("the Pod %s has no running container with a cgroup", pod)
}

// read is a number out of a file of names and numbers.
func (g *memory) read(ctx context.Context, file, name string) (int64, error) {
	out, err := g.b.e.Lab.Exec(ctx, g.node, "cat", g.dir+"/"+file)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(out) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			return strconv.ParseInt(f[1], 10, 64)
		}
	}
	return 0, fmt.Errorf("%s/%s says nothing of %s", g.dir, file, name)
}

func (g *memory) kills(ctx context.Context) (int64, error) {
	return g.read(ctx, g.killFile, "oom_kill")
}

// limit leaves 16 MiB beyond what processes have. The kernel first takes back what it can.
func (g *memory) limit(ctx context.Context) error {
	used, err := g.read(ctx, "memory.stat", g.anonymous)
	if err != nil {
		return err
	}
	return g.write(ctx, strconv.FormatInt(used+16<<20, 10))
}

func (g *memory) unlimit(ctx context.Context) error { return g.write(ctx, g.unlimited) }

// write sets the limit. A cgroup that has ended needs none.
func (g *memory) write(ctx context.Context, limit string) error {
	_, err := g.b.e.Lab.Exec(ctx, g.node, "sh", "-c", `[ ! -d "$1" ] || echo "$2" > "$1/$3"`, "sh", g.dir, limit, g.max)
	if err != nil {
		return fmt.Errorf("limiting the memory of a container: %w", err)
	}
	return nil
}
