package cmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

func fenceCommand(o Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fence",
		Short: "Take an instance out of service without touching its data, or back",
	}
	cmd.AddCommand(
		fenceVerb(o, true, "on [CLUSTER] INSTANCE", "Take an instance out of service",
			"Take an instance out of service: it leaves every Service, its server stops, and its Pod and data stay for inspection.\n"+
				"A primary hands over what it has first; then a replica is promoted in its place. The fence stays until fence off, whatever\n"+
				"becomes of the Pod.\n"),
		fenceVerb(o, false, "off [CLUSTER] INSTANCE", "Put a fenced instance back into service",
			"Put a fenced instance back into service: its server starts, and it follows the primary. It takes no role back by itself.\n"),
	)
	return cmd
}

func fenceVerb(o Options, on bool, use, short, long string) *cobra.Command {
	waits, timeout := false, time.Duration(0)
	cmd := &cobra.Command{
		Use: use, Short: short,
		Long:              long + "INSTANCE is a name (demo-2) or a number (2). CLUSTER may be left out when the namespace has only one.",
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: complete(o),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, cluster, instance, err := instanceOf(o, args)
			if err != nil {
				return err
			}
			f := fence{o: o, c: c, cluster: cluster, asked: instance, on: on}
			if err := f.ask(cmd.Context()); err != nil || !waits {
				return err
			}
			return f.wait(cmd.Context(), timeout)
		},
	}
	cmd.Flags().BoolVar(&waits, "wait", false, "wait until it is in no Service and not ready, or ready again")
	cmd.Flags().DurationVar(&timeout, "timeout", 2*time.Minute, "how long to wait; it goes on afterwards")
	return cmd
}

// fence is one request.
type fence struct {
	o       Options
	c       client.Client
	cluster client.ObjectKey
	// asked is the instance as given, instance its full name.
	asked, instance string
	on              bool
}

// ask writes the annotation, unless it says so already.
func (f *fence) ask(ctx context.Context) error {
	onPod, err := f.clearPod(ctx)
	if err != nil {
		return err
	}
	changed, primary := false, false
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		c, err := find(ctx, f.c, f.cluster.Namespace, f.cluster.Name)
		if err != nil {
			return err
		}
		f.cluster.Name, primary = c.Name, false
		before := api.ParseFencing(c.Annotations[api.AnnotationFencing])
		if f.instance, err = f.resolve(c, before); err != nil {
			return err
		}
		after := slices.DeleteFunc(slices.Clone(before), func(name string) bool { return name == f.instance })
		if f.on {
			after = api.JoinFencing(before, []string{f.instance})
			primary = c.Status.CurrentPrimary == f.instance
		}
		if changed = !slices.Equal(before, after); !changed {
			return nil
		}
		now := c.DeepCopy()
		if now.Annotations == nil {
			now.Annotations = map[string]string{}
		}
		if now.Annotations[api.AnnotationFencing] = api.FormatFencing(after); len(after) == 0 {
			delete(now.Annotations, api.AnnotationFencing)
		}
		return f.c.Patch(ctx, now, client.MergeFromWithOptions(c, client.MergeFromWithOptimisticLock{}), client.FieldOwner("kubectl-cnmsql"))
	})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("you may not change the Cluster %s, which is how a fence is asked for: %w", f.cluster.Name, err)
	}
	if err != nil {
		return err
	}
	f.tell(changed || onPod, primary)
	return nil
}

// resolve is the instance's name. One that is fenced and does not exist any more, or never did, can still be taken out.
func (f *fence) resolve(c *api.Cluster, fenced []string) (string, error) {
	if !f.on && slices.Contains(fenced, f.asked) {
		return f.asked, nil
	}
	return resolve(c, f.asked)
}

// clearPod removes a request on the Pod that the operator has not moved to the Cluster yet, and tells whether there was one.
// It comes before the Cluster is changed: that wakes the operator, which would move the request.
func (f *fence) clearPod(ctx context.Context) (bool, error) {
	if f.on {
		return false, nil
	}
	c, err := find(ctx, f.c, f.cluster.Namespace, f.cluster.Name)
	if err != nil {
		return false, err
	}
	if f.instance, err = f.resolve(c, api.ParseFencing(c.Annotations[api.AnnotationFencing])); err != nil {
		return false, err
	}
	pod := &corev1.Pod{}
	err = f.c.Get(ctx, client.ObjectKey{Namespace: f.cluster.Namespace, Name: f.instance}, pod)
	if apierrors.IsNotFound(err) || err == nil && pod.Annotations[api.AnnotationFencing] == "" {
		return false, nil
	}
	if err == nil {
		now := pod.DeepCopy()
		delete(now.Annotations, api.AnnotationFencing)
		err = client.IgnoreNotFound(f.c.Patch(ctx, now, client.MergeFrom(pod), client.FieldOwner("kubectl-cnmsql")))
	}
	if err != nil {
		return false, fmt.Errorf("whether the Pod %s asks for the fence (annotation %s) could not be seen or changed: %w", f.instance, api.AnnotationFencing, err)
	}
	return true, nil
}

func (f *fence) tell(changed, primary bool) {
	say := func(format string, args ...any) { _, _ = fmt.Fprintf(f.o.Out, format+"\n", args...) }
	switch {
	case !changed && f.on:
		say("%s is fenced already: nothing to do", f.instance)
	case !changed:
		say("%s is not fenced: nothing to do", f.instance)
	case primary:
		say("asked to fence %s, the primary of %s: writes stop until a replica is promoted in its place", f.instance, f.cluster.Name)
	case f.on:
		say("asked to fence %s", f.instance)
	default:
		say("asked to end the fence of %s", f.instance)
	}
}

// wait looks until the instance is as asked for: its server stopped, or ready again.
func (f *fence) wait(ctx context.Context, timeout time.Duration) error {
	last := ""
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		var done bool
		var err error
		done, last, err = f.look(ctx)
		return done, err
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return fmt.Errorf("time is up after %s, and it goes on: %s", timeout, last)
	}
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintln(f.o.Out, last)
	return nil
}

// look tells whether it is done, and how it stands.
func (f *fence) look(ctx context.Context) (done bool, how string, err error) {
	c, err := find(ctx, f.c, f.cluster.Namespace, f.cluster.Name)
	if err != nil {
		return false, "", err
	}
	pod := &corev1.Pod{}
	err = f.c.Get(ctx, client.ObjectKey{Namespace: f.cluster.Namespace, Name: f.instance}, pod)
	if client.IgnoreNotFound(err) != nil {
		return false, "", fmt.Errorf("reading the Pod %s: %w", f.instance, err)
	}
	ready := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
	switch recorded := slices.Contains(c.Status.FencedInstances, f.instance); {
	case recorded != f.on && f.on:
		return false, "the operator has not fenced " + f.instance + " yet", nil
	case recorded != f.on:
		return false, "the operator has not ended the fence of " + f.instance + " yet", nil
	case f.on && ready:
		return false, f.instance + " is fenced and still ready: its server has not stopped", nil
	case f.on:
		return true, f.instance + " is fenced: in no Service, and not ready", nil
	case !slices.Contains(c.Status.InstanceNames, f.instance):
		return true, f.instance + " is not fenced, and no instance any more", nil
	case !ready:
		return false, f.instance + " is not ready yet", nil
	}
	return true, f.instance + " is back in service", nil
}
