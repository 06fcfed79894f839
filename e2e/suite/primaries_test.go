package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/e2e/framework"
)

// primaries are the Pods with the primary's label, as a watch of all Pods tells it: in the order of the
// changes, none left out.
var primaries struct {
	sync.Mutex
	byCluster map[string][]string
	broken    []string
	// known are the Pods that were seen, wereReady those that were Ready at any time. early are those that
	// were made before another of their Cluster had ever been Ready.
	known     map[types.UID]*corev1.Pod
	wereReady map[types.UID]bool
	early     map[string]string
}

// early says of a Cluster's Pods which one was made too soon; empty when none was.
func early(cluster string) string {
	primaries.Lock()
	defer primaries.Unlock()
	return primaries.early[cluster]
}

// violations are those since the last call.
func violations() []string {
	primaries.Lock()
	defer primaries.Unlock()
	out := primaries.broken
	primaries.broken = nil
	return out
}

// watchPrimaries looks at every change of a Pod until the process ends.
func watchPrimaries(e *framework.Environment) error {
	ctx := context.Background()
	w, err := e.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace))
	if err != nil {
		return fmt.Errorf("watching Pods: %w", err)
	}
	primaries.byCluster, primaries.early = map[string][]string{}, map[string]string{}
	primaries.known, primaries.wereReady = map[types.UID]*corev1.Pod{}, map[types.UID]bool{}
	go func() {
		for {
			for event := range w.ResultChan() {
				if pod, ok := event.Object.(*corev1.Pod); ok {
					seen(pod, event.Type == watch.Deleted)
				}
			}
			// The server ends watches now and then; a new one begins with the Pods that there are.
			for w, err = e.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace)); err != nil; {
				w, err = e.Client.Watch(ctx, &corev1.PodList{}, client.InNamespace(namespace))
			}
		}
	}()
	return nil
}

func seen(pod *corev1.Pod, gone bool) {
	primaries.Lock()
	defer primaries.Unlock()
	cluster := pod.Labels[api.LabelCluster]
	if _, known := primaries.known[pod.UID]; !known {
		primaries.known[pod.UID] = pod
		for uid, other := range primaries.known {
			if other.Name != pod.Name && other.Labels[api.LabelCluster] == cluster && !primaries.wereReady[uid] {
				primaries.early[cluster] = pod.Name + " was made before " + other.Name + " had ever been Ready"
			}
		}
	}
	primaries.wereReady[pod.UID] = primaries.wereReady[pod.UID] || isReady(pod)
	list := slices.DeleteFunc(primaries.byCluster[cluster], func(name string) bool { return name == pod.Name })
	if !gone && pod.Labels[api.LabelRole] == api.RolePrimary {
		list = append(list, pod.Name)
	}
	primaries.byCluster[cluster] = list
	if len(list) > 1 {
		primaries.broken = append(primaries.broken, cluster+": "+strings.Join(list, " and "))
	}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
