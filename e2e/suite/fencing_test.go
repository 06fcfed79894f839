package suite

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/e2e/framework"
)

// pod reads an instance's Pod.
func pod(t *testing.T, e *framework.Environment, key client.ObjectKey, name string) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	must(t, e.Client.Get(t.Context(), named(key, name), p))
	return p
}

// plugin runs kubectl cnmsql.
func plugin(t *testing.T, e *framework.Environment, key client.ObjectKey, args ...string) string {
	t.Helper()
	out, err := e.Plugin(t.Context(), key.Namespace, args...)
	must(t, err)
	return out
}

// halted tells that an instance's container runs, is not Ready, and that no server listens there.
func halted(t *testing.T, e *framework.Environment, key client.ObjectKey, name string) bool {
	t.Helper()
	p := pod(t, e, key, name)
	if p.Status.Phase != corev1.PodRunning || isReady(p) || p.DeletionTimestamp != nil || len(p.Status.ContainerStatuses) == 0 {
		return false
	}
	// It is past its startup probe, so that the kubelet leaves it alone.
	if started := p.Status.ContainerStatuses[0].Started; started == nil || !*started {
		return false
	}
	db, err := e.Database(t.Context(), key)
	must(t, err)
	direct, err := db.Open(name)
	must(t, err)
	defer func() { must(t, direct.Close()) }()
	return direct.PingContext(t.Context()) != nil
}

func TestAFencedReplicaIsOutOfServiceUntilTheFenceEnds(t *testing.T) {
	e, key := shared(t)
	c := status(t, e, key)
	name := replica(t, e, key)
	restarts := pod(t, e, key, name).Status.ContainerStatuses[0].RestartCount
	g := NewWithT(t)
	whileWriting(t, e, key, func() {
		// On the Pod, from where it is moved to the Cluster.
		_, err := e.Kubectl(t.Context(), "-n", key.Namespace, "annotate", "pod", name, api.AnnotationFencing+"=true")
		must(t, err)
		for _, service := range []string{"ro", "r", "rw"} {
			g.Eventually(func() []string { return endpoints(t, e, named(key, c.ServiceName(service))) }, "20s", "100ms").ShouldNot(ContainElement(name), "Service %s", service)
		}
		g.Eventually(func() bool { return halted(t, e, key, name) }, "60s", "200ms").Should(BeTrue(), "the server of %s has stopped", name)
		if p := pod(t, e, key, name); p.Annotations[api.AnnotationFencing] != "" || p.Status.ContainerStatuses[0].RestartCount != restarts {
			t.Errorf("annotation %q, %d restarts, before %d", p.Annotations[api.AnnotationFencing], p.Status.ContainerStatuses[0].RestartCount, restarts)
		}

		// It outlives the Pod.
		old := pod(t, e, key, name).UID
		_, err = e.Kubectl(t.Context(), "-n", key.Namespace, "delete", "pod", name)
		must(t, err)
		g.Eventually(func() bool {
			p := &corev1.Pod{}
			err := e.Client.Get(t.Context(), named(key, name), p)
			return err == nil && p.UID != old && halted(t, e, key, name)
		}, "90s", "200ms").Should(BeTrue(), "the next Pod of %s is fenced, too", name)
		if st := status(t, e, key).Status; !slices.Equal(st.FencedInstances, []string{name}) || slices.Contains(st.FailedInstances, name) {
			t.Errorf("fenced %q, failed %q", st.FencedInstances, st.FailedInstances)
		}

		// It ends although the Pod is gone.
		_, err = e.Kubectl(t.Context(), "-n", key.Namespace, "delete", "pod", name, "--wait=false")
		must(t, err)
		plugin(t, e, key, "fence", "off", key.Name, name, "--wait")
		ready(t, e, key)
	})
	if st := status(t, e, key).Status; len(st.DivergedInstances) > 0 || st.CurrentPrimaryGeneration != c.Status.CurrentPrimaryGeneration {
		t.Errorf("diverged %q, generation %d, before %d", st.DivergedInstances, st.CurrentPrimaryGeneration, c.Status.CurrentPrimaryGeneration)
	}
}

func TestAFencedPrimaryFailsOverAndKeepsItsPod(t *testing.T) {
	e, key := shared(t)
	before := status(t, e, key).Status
	old := before.CurrentPrimary
	kept := pod(t, e, key, old)
	g := NewWithT(t)
	gap := whileWriting(t, e, key, func() {
		plugin(t, e, key, "fence", "on", key.Name, old, "--wait")
		_, err := e.AwaitPrimary(t.Context(), key, old, readyWithin)
		must(t, err)
		g.Eventually(func() bool { return halted(t, e, key, old) }, "60s", "200ms").Should(BeTrue(), "the server of %s has stopped", old)
		if p := pod(t, e, key, old); p.UID != kept.UID || p.Status.ContainerStatuses[0].RestartCount != kept.Status.ContainerStatuses[0].RestartCount {
			t.Errorf("its Pod is another one, or its container")
		}
		plugin(t, e, key, "fence", "off", key.Name, old, "--wait")
		ready(t, e, key)
	})
	if gap > 15*time.Second {
		t.Errorf("writes stood still for %s: the lease is given back, it need not expire", gap)
	}
	after := status(t, e, key).Status
	if after.CurrentPrimary == old || after.CurrentPrimaryGeneration != before.CurrentPrimaryGeneration+1 || len(after.DivergedInstances) > 0 {
		t.Errorf("primary %s in generation %d, before %d; diverged %q", after.CurrentPrimary, after.CurrentPrimaryGeneration, before.CurrentPrimaryGeneration, after.DivergedInstances)
	}
}
