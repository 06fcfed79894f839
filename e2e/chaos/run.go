package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/e2e/chaos/plan"
	"cnmsql.co/operator/e2e/framework"
)

// Where the Cluster is. Both are made anew for each run.
const (
	namespace   = "chaos"
	clusterName = "c"
)

// instances is how many servers the Cluster has.
const instances = 3

// runner is one run of the program.
type runner struct {
	options
	e       *framework.Environment
	key     client.ObjectKey
	archive string
	folder  string
	out     io.Writer
	// limitedDisks tells that a node's volumes can be filled up.
	limitedDisks bool

	begin   time.Time
	history *history
	clients *clients
	db      *framework.Database
}

// run makes a Cluster and breaks it in rounds until the time is over or a promise is broken.
func (r *runner) run(ctx context.Context) (err error) {
	r.begin, r.key = time.Now(), client.ObjectKey{Namespace: namespace, Name: clusterName}
	timeline, err := os.Create(filepath.Join(r.folder, "timeline.txt"))
	if err != nil {
		return fmt.Errorf("making the timeline: %w", err)
	}
	recording, stop := context.WithCancel(context.WithoutCancel(ctx))
	r.history = newHistory(r.e, r.key, timeline)
	var keeping error
	defer func() {
		stop()
		r.history.all.Wait()
		err = errors.Join(err, keeping, timeline.Close())
	}()
	if err := r.setUp(ctx, recording); err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	r.history.all.Go(func() { keeping = r.e.Lab.KeepPodLogs(recording, namespace, framework.OperatorNamespace) })
	defer r.clients.stop()
	sum := newSummary()
	err = r.rounds(ctx, sum)
	r.clients.stop()
	sum.print(r.out, r)
	copied := r.e.Lab.CopyPodLogs(filepath.Join(r.folder, "pods"))
	if err != nil {
		return errors.Join(r.blame(context.WithoutCancel(ctx), err), copied)
	}
	if copied != nil {
		return copied
	}
	r.say("nothing was broken; timeline and logs are in %s", r.folder)
	return nil
}

func (r *runner) rounds(ctx context.Context, sum *summary) error {
	p := plan.New(r.seed, r.kinds)
	begin := time.Now()
	for time.Since(begin) < r.duration {
		result, err := r.round(ctx, p.Next())
		result.print(r.out)
		sum.add(result)
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted: %w", ctx.Err())
		}
	}
	return nil
}

// setUp installs the operator and makes a Cluster whose every change is recorded.
func (r *runner) setUp(ctx, recording context.Context) error {
	r.say("seed %d for %s; what is recorded goes to %s", r.seed, r.duration, r.folder)
	if err := r.e.Install(ctx, r.archive); err != nil {
		return err
	}
	// Like most clusters: that the one server of names is gone with a node is not what is tried here.
	if _, err := r.e.Kubectl(ctx, "-n", "kube-system", "scale", "deployment/coredns", "--replicas=3"); err != nil {
		return err
	}
	_, err := r.e.Lab.Exec(ctx, "n1", "grep", "-q", "^/dev/loop.* /var/lib/local-path ", "/proc/mounts")
	r.limitedDisks = err == nil
	if !r.limitedDisks {
		r.say("disks are not filled: %v", errNoLimit)
	}
	if err := r.e.FreshNamespace(ctx, namespace, nil); err != nil {
		return err
	}
	r.history.record(recording)
	if err := r.e.Client.Create(ctx, theCluster(r.key)); err != nil {
		return fmt.Errorf("creating the Cluster: %w", err)
	}
	if err := r.e.AwaitReady(ctx, r.key, readyWithin, func(now string) { r.say("  %s", now) }); err != nil {
		return err
	}
	return r.startClients(ctx)
}

func (r *runner) startClients(ctx context.Context) error {
	var err error
	if r.db, err = r.e.Database(ctx, r.key); err != nil {
		return err
	}
	service := &corev1.Service{}
	if err := r.e.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: clusterName + "-rw"}, service); err != nil {
		return fmt.Errorf("reading the Service: %w", err)
	}
	r.db.Resolve = func(host string) string {
		if host == service.Name {
			return service.Spec.ClusterIP
		}
		return r.history.ip(host)
	}
	c, err := r.e.Cluster(ctx, r.key)
	if err != nil {
		return err
	}
	r.clients, err = startClients(ctx, r.db, service.Name, c.Status.InstanceNames)
	return err
}

// theCluster is one of three on three nodes, which loses nothing that was acknowledged and rather waits.
func theCluster(key client.ObjectKey) *api.Cluster {
	c := framework.SmallCluster(key, instances)
	c.Spec.MySQL.SemiSync.DataDurability = api.DurabilityRequired
	c.Spec.Affinity.PodAntiAffinityType = "required"
	return c
}

// blame keeps what explains a broken promise, and says where.
func (r *runner) blame(ctx context.Context, broken error) error {
	bounded, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for file, args := range map[string][]string{
		"status.txt":  {"cnmsql", "status", clusterName, "-n", namespace},
		"cluster.txt": {"-n", namespace, "get", "cluster", clusterName, "-o", "yaml"},
		"pods.txt":    {"get", "pods", "-A", "-o", "wide"},
		"events.txt":  {"-n", namespace, "get", "events", "--sort-by=.lastTimestamp"},
		"nodes.txt":   {"get", "nodes", "-o", "wide"},
	} {
		out, err := r.e.Kubectl(bounded, args...)
		if err != nil {
			out += "\n" + err.Error()
		}
		if err := os.WriteFile(filepath.Join(r.folder, file), []byte(out), 0o600); err != nil {
			return errors.Join(broken, err)
		}
	}
	return fmt.Errorf("%w\nseed %d%s; timeline, logs and state are in %s", broken, r.seed, r.only(), r.folder)
}

// only names the faults that a run was limited to: they are part of what repeats it.
func (r *runner) only() string {
	if len(r.kinds) == len(plan.All()) {
		return ""
	}
	return " with -kinds " + names(r.kinds)
}

func (r *runner) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	_, _ = fmt.Fprintf(r.out, "%7.1f s  %s\n", time.Since(r.begin).Seconds(), text)
	r.history.say(time.Now(), "chaos", text)
}

// brief is the first line of an error, not too much of it.
func brief(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	if len(line) > 160 {
		line = line[:160] + "…"
	}
	return line
}
