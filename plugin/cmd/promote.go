package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

func promoteCommand(o Options) *cobra.Command {
	wait, timeout := false, time.Duration(0)
	cmd := &cobra.Command{
		Use:   "promote [CLUSTER] INSTANCE",
		Short: "Ask for another primary (a switchover)",
		Long: "Ask for another primary (a switchover): no acknowledged write is lost.\n" +
			"INSTANCE is a name (demo-2) or a number (2). CLUSTER may be left out when the namespace has only one.\n" +
			"Without --wait it is only asked for: the operator may refuse it, and then says why in an event.",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: complete(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, cluster, instance, err := instanceOf(o, args)
			if err != nil {
				return err
			}
			p := promotion{o: o, c: c, cluster: cluster, asked: instance}
			done, err := p.ask(cmd.Context())
			if err != nil || done || !wait {
				return err
			}
			return p.wait(cmd.Context(), timeout)
		},
	}
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is done, and fail if it is refused or ended")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait; the switchover itself goes on afterwards")
	return cmd
}

// promotion is one request for a switchover.
type promotion struct {
	o       Options
	c       client.WithWatch
	cluster client.ObjectKey
	// asked is the instance as given, instance its full name.
	asked, instance string
	started         time.Time
}

// ask writes the target, unless there is nothing to do. done tells that there is nothing to wait for.
func (p *promotion) ask(ctx context.Context) (done bool, err error) {
	p.started = p.o.Now()
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		c, err := find(ctx, p.c, p.cluster.Namespace, p.cluster.Name)
		if err != nil {
			return err
		}
		p.cluster.Name = c.Name
		if p.instance, err = resolve(c, p.asked); err != nil {
			return err
		}
		if done = settled(c, p.instance); done {
			return nil
		}
		changed := c.DeepCopy()
		changed.Status.TargetPrimary = p.instance
		return p.c.Status().Patch(ctx, changed, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}), client.FieldOwner("kubectl-cnmsql"))
	})
	switch {
	case apierrors.IsForbidden(err):
		return false, fmt.Errorf("you may not write the status of Cluster %s, which is how a switchover is asked for: %w", p.cluster.Name, err)
	case err != nil && !p.stored(ctx):
		return false, err
	case done:
		p.say("%s is the primary of %s already: nothing to do", p.instance, p.cluster.Name)
		return true, nil
	}
	p.say("asked for %s as the primary of %s", p.instance, p.cluster.Name)
	return false, nil
}

// stored tells that the request is in the Cluster although writing it failed: the answer may have been lost.
func (p *promotion) stored(ctx context.Context) bool {
	if p.instance == "" {
		return false
	}
	c, err := find(ctx, p.c, p.cluster.Namespace, p.cluster.Name)
	return err == nil && c.Status.TargetPrimary == p.instance
}

func (p *promotion) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.o.Out, format+"\n", args...)
}

// resolve returns the full name of an instance that exists.
func resolve(c *api.Cluster, asked string) (string, error) {
	name := asked
	if n, err := strconv.ParseInt(asked, 10, 32); err == nil {
		name = c.InstanceName(int32(n))
	}
	if slices.Contains(c.Status.InstanceNames, name) {
		return name, nil
	}
	if len(c.Status.InstanceNames) == 0 {
		return "", fmt.Errorf("the Cluster %s has no instance yet", c.Name)
	}
	return "", fmt.Errorf("the Cluster %s has no instance %q; it has: %s", c.Name, asked, strings.Join(c.Status.InstanceNames, ", "))
}

// settled tells that the instance is the primary and nobody wants another.
func settled(c *api.Cluster, instance string) bool {
	st := &c.Status
	return st.CurrentPrimary == instance && (st.TargetPrimary == "" || st.TargetPrimary == instance) && pending(c) == nil
}

func pending(c *api.Cluster) *api.PrimaryTransition {
	t := c.Status.PrimaryTransition
	if t == nil || t.Generation <= c.Status.CurrentPrimaryGeneration {
		return nil
	}
	return t
}

// wait watches the Cluster until the instance is the primary, the request is refused, or time is up.
func (p *promotion) wait(ctx context.Context, timeout time.Duration) error {
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := p.follow(bounded)
	if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	// What the watch has not told may have happened all the same.
	c, err := find(ctx, p.c, p.cluster.Namespace, p.cluster.Name)
	if err != nil {
		return fmt.Errorf("time is up after %s, and how it stands cannot be read: %w", timeout, err)
	}
	if over, err := p.verdict(ctx, c); over {
		return err
	}
	return fmt.Errorf("time is up after %s; the switchover goes on: the primary is %s, wanted is %s, state %s (%s)",
		timeout, c.Status.CurrentPrimary, c.Status.TargetPrimary, c.Status.Phase, c.Status.PhaseReason)
}

// follow judges the Cluster after each of its changes.
func (p *promotion) follow(ctx context.Context) error {
	for {
		over, err := p.once(ctx)
		if over || err != nil {
			return err
		}
	}
}

// once watches until the watch ends, which a server may do at any time. The Cluster is read after the watch
// has begun: a change between the two cannot be missed.
func (p *promotion) once(ctx context.Context) (over bool, err error) {
	w, err := p.c.Watch(ctx, &api.ClusterList{}, client.InNamespace(p.cluster.Namespace), client.MatchingFields{"metadata.name": p.cluster.Name})
	if err != nil {
		return false, ended(ctx, fmt.Errorf("watching Cluster %s: %w", p.cluster.Name, err))
	}
	defer w.Stop()
	for {
		c, err := find(ctx, p.c, p.cluster.Namespace, p.cluster.Name)
		if err != nil {
			return false, ended(ctx, err)
		}
		if over, err := p.verdict(ctx, c); over {
			return true, err
		}
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case _, open := <-w.ResultChan():
			if !open {
				return false, nil
			}
		}
	}
}

// ended prefers the end of the context to the error that it caused.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// verdict tells whether the request has come to its end, and whether to a bad one.
func (p *promotion) verdict(ctx context.Context, c *api.Cluster) (over bool, err error) {
	st := &c.Status
	switch {
	case settled(c, p.instance):
		p.say("%s is the primary of %s after %.1f s (generation %d)", p.instance, c.Name, p.o.Now().Sub(p.started).Seconds(), st.CurrentPrimaryGeneration)
		return true, nil
	case st.TargetPrimary != p.instance:
		return true, fmt.Errorf("%s did not become the primary: %s", p.instance, p.reason(ctx, c))
	}
	return false, nil
}
