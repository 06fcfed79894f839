package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// controlPlane is where the lab's API server runs.
const controlPlane = "cp"

// signalAPI finds the API server by its second argument.
const signalAPI = `for d in /proc/[0-9]*; do
  if [ "$(tr '\0' '\n' <"$d/cmdline" 2>/dev/null | sed -n 2p)" = kube-apiserver ]; then kill "-$1" "${d#/proc/}" && echo "process ${d#/proc/}"; fi
done | grep .`

// hangAPI stops the API server: connections stay open and are not answered.
type hangAPI struct{ lab framework.Lab }

func (h hangAPI) begin(ctx context.Context) (string, error) { return h.signal(ctx, "STOP") }
func (h hangAPI) heal(ctx context.Context) (string, error) {
	_, err := h.signal(ctx, "CONT")
	return "", err
}

func (h hangAPI) signal(ctx context.Context, signal string) (string, error) {
	out, err := h.lab.Exec(ctx, controlPlane, "sh", "-c", signalAPI, "sh", signal)
	return strings.TrimSpace(out), err
}

// awayAPI breaks every connection to the API server and refuses new ones.
type awayAPI struct{ lab framework.Lab }

const (
	refuseAPI = "add table inet chaos_away; add chain inet chaos_away in { type filter hook input priority -10; }; " +
		"add rule inet chaos_away in tcp dport 6443 reject with tcp reset"
	admitAPI = "add table inet chaos_away; delete table inet chaos_away"
)

func (a awayAPI) begin(ctx context.Context) (string, error) {
	_, err := a.lab.Exec(ctx, controlPlane, "nft", refuseAPI)
	return "", err
}

func (a awayAPI) heal(ctx context.Context) (string, error) {
	_, err := a.lab.Exec(ctx, controlPlane, "nft", admitAPI)
	return "", err
}

// operatorOn is the operator's container on a node, whichever Pod that is.
func operatorOn(node string) framework.Container {
	return framework.Container{Node: node, Namespace: framework.OperatorNamespace, Name: "operator"}
}

// onAll does something on all nodes at once and tells on how many it worked.
func onAll(nodes []string, do func(node string) error) int {
	var mu sync.Mutex
	var all sync.WaitGroup
	n := 0
	for _, node := range nodes {
		all.Go(func() {
			if do(node) == nil {
				mu.Lock()
				defer mu.Unlock()
				n++
			}
		})
	}
	all.Wait()
	return n
}

// hangOperator stops the operator. What it knew is old when it goes on.
type hangOperator struct {
	lab   framework.Lab
	nodes []string
}

func (h hangOperator) begin(ctx context.Context) (string, error) {
	n := onAll(h.nodes, func(node string) error {
		_, err := h.lab.Signal(ctx, operatorOn(node), framework.First, "STOP")
		return err
	})
	if n == 0 {
		return "", errors.New("no operator runs")
	}
	return "", nil
}

func (h hangOperator) heal(ctx context.Context) (string, error) {
	n := onAll(h.nodes, func(node string) error {
		_, err := h.lab.SignalAll(ctx, operatorOn(node), "CONT")
		return err
	})
	if n == 0 {
		return "gone when it should have gone on", nil
	}
	return "", nil
}

// killOperator kills the operator again and again, each time a random while after the last, so that its successor is
// hit before, while and after it does something. Its Pod and its claim to be the leader are removed at once: the
// next one neither waits for the kubelet's patience nor for the leader's lease.
type killOperator struct {
	e     *framework.Environment
	nodes []string
	seed  uint64

	cancel context.CancelFunc
	done   chan struct{}
	kills  int
}

// Times between two kills. A new operator needs about two seconds to begin its work.
const (
	killSoonest = 200 * time.Millisecond
	killLatest  = 5 * time.Second
)

func (k *killOperator) begin(ctx context.Context) (string, error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx)) // heal ends it
	k.cancel, k.done = cancel, make(chan struct{})
	chance := rand.New(rand.NewPCG(k.seed, 1))
	go func() {
		defer close(k.done)
		for running.Err() == nil {
			k.once(running)
			select {
			case <-running.Done():
			case <-time.After(killSoonest + time.Duration(chance.Int64N(int64(killLatest-killSoonest)))):
			}
		}
	}()
	return "", nil
}

func (k *killOperator) once(ctx context.Context) {
	k.kills += onAll(k.nodes, func(node string) error {
		_, err := k.e.Lab.Signal(ctx, operatorOn(node), framework.First, "KILL")
		return err
	})
	bounded, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: framework.OperatorNamespace, Name: "operator.cnmsql.co"}
	if k.e.Client.Get(bounded, key, lease) == nil {
		lease.Spec.HolderIdentity = new("")
		_ = k.e.Client.Update(bounded, lease) // on a conflict somebody else has it already
	}
	_ = k.e.Client.DeleteAllOf(bounded, &corev1.Pod{}, client.InNamespace(framework.OperatorNamespace),
		client.MatchingLabels{"app.kubernetes.io/component": "operator"}, client.GracePeriodSeconds(0)) // without an API server it is started again where it was
}

func (k *killOperator) heal(context.Context) (string, error) {
	if k.cancel == nil {
		return "", nil
	}
	k.cancel()
	<-k.done
	return fmt.Sprintf("killed %d times", k.kills), nil
}

// switchover asks for another primary, and takes it back if it is to.
type switchover struct {
	r        *runner
	to, back string
}

func (s switchover) begin(ctx context.Context) (string, error) { return "", s.ask(ctx, s.to) }

func (s switchover) heal(ctx context.Context) (string, error) {
	if s.back == "" {
		return "", nil
	}
	if err := s.ask(ctx, s.back); err != nil {
		return "not taken back: " + brief(err), nil
	}
	return "asked for " + s.back + " again", nil
}

func (s switchover) ask(ctx context.Context, instance string) error {
	bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := s.r.e.Plugin(bounded, s.r.key.Namespace, "promote", s.r.key.Name, instance)
	return err
}

// fenceInstance takes an instance out of service, as a person does.
type fenceInstance struct {
	r        *runner
	instance string
}

func (f fenceInstance) begin(ctx context.Context) (string, error) { return "", f.ask(ctx, "on") }

// heal ends the fence, once the API server is there to be told.
func (f fenceInstance) heal(ctx context.Context) (string, error) {
	return "", framework.Await(ctx, "the end of the fence of "+f.instance, healWithin, func(ctx context.Context) (bool, string, error) {
		err := f.ask(ctx, "off")
		return err == nil, "", err
	})
}

func (f fenceInstance) ask(ctx context.Context, verb string) error {
	bounded, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := f.r.e.Plugin(bounded, f.r.key.Namespace, "fence", verb, f.r.key.Name, f.instance)
	return err
}
