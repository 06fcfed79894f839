package suite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
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
	primaries.byCluster = map[string][]string{}
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
	list := slices.DeleteFunc(primaries.byCluster[cluster], func(name string) bool { return name == pod.Name })
	if !gone && pod.Labels[api.LabelRole] == api.RolePrimary {
		list = append(list, pod.Name)
	}
	primaries.byCluster[cluster] = list
	if len(list) > 1 {
		primaries.broken = append(primaries.broken, cluster+": "+strings.Join(list, " and "))
	}
}
