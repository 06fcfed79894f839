package facts

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/instance/protocol"
)

var start = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

func aCluster() *api.Cluster {
	c := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1", UID: "uid-of-c1", Generation: 1}}
	c.Spec.Instances = 2
	c.Spec.Storage.Size = resource.MustParse("1Gi")
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: api.ConditionCredentialsReady, Status: metav1.ConditionTrue, Reason: "Reconciled"})
	return c
}

func aPod(name string) *corev1.Pod {
	c := aCluster()
	c.Default()
	pod := objects.Pod(c, name, objects.Options{})
	pod.UID = types.UID("pod-" + name)
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.ContainerMySQL, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	return pod
}

// read takes a Cluster and what belongs to it.
func read(now time.Time, all ...any) *Facts {
	var c *api.Cluster
	var pods []corev1.Pod
	var claims []corev1.PersistentVolumeClaim
	classes := &storagev1.StorageClassList{}
	for _, o := range all {
		switch o := o.(type) {
		case *api.Cluster:
			c = o
		case *corev1.Pod:
			pods = append(pods, *o)
		case *corev1.PersistentVolumeClaim:
			claims = append(claims, *o)
		case *storagev1.StorageClass:
			classes.Items = append(classes.Items, *o)
		default:
			panic(fmt.Sprintf("%T", o))
		}
	}
	f := Of(c, pods, claims)
	f.Now, f.Classes = now, classes
	f.Secrets = map[string]bool{}
	for _, name := range f.SecretNames() {
		f.Secrets[name] = true
	}
	return f
}

func snapshot(now time.Time, all ...any) core.Snapshot { return read(now, all...).Snapshot() }

func TestWhatAManagerSaidCountsOnlyWhileThereIsItsPod(t *testing.T) {
	f := read(start, aCluster(), aPod("c1-1"), objects.PVCs(aCluster(), "c1-2")[0])
	f.Sights = map[string]Sight{
		"c1-1": {Report: &protocol.Report{Instance: "c1-1"}, Age: time.Second, Asked: true},
		"c1-2": {Report: &protocol.Report{Instance: "c1-2"}, Asked: true},
	}
	s := f.Snapshot()
	if i := s.Instances[0]; i.Report == nil || i.Age != time.Second || !i.Asked {
		t.Errorf("c1-1 %+v", i)
	}
	if i := s.Instances[1]; i.Name != "c1-2" || i.Report != nil || i.Asked {
		t.Errorf("c1-2, which has no Pod: %+v", i)
	}
}

func TestNodesAreThoseOfTheClustersOwnPods(t *testing.T) {
	one, two, foreign := aPod("c1-1"), aPod("c1-2"), aPod("c1-3")
	one.Spec.NodeName, two.Spec.NodeName, foreign.Spec.NodeName = "b", "b", "c"
	foreign.OwnerReferences[0].UID = "uid-before"
	f := read(start, aCluster(), one, two, foreign)
	if got := f.Nodes(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("nodes %v", got)
	}
	f.Cordoned = map[string]bool{"b": true}
	for _, i := range f.Snapshot().Instances {
		if !i.Pod.Cordoned {
			t.Errorf("%s is not on a cordoned node", i.Name)
		}
	}
}

// On a node that cannot be reached the containers' condition stays as it was, and only the Pod's is set to False.
func TestReadinessIsThePodsAndNeverItsContainers(t *testing.T) {
	pod := aPod("c1-1")
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}, {Type: corev1.PodReady, Status: corev1.ConditionFalse},
	}
	if podFacts(pod, "", &patience{now: start}).Ready {
		t.Error("Ready by its containers")
	}
	pod.Status.Conditions[0].Status, pod.Status.Conditions[1].Status = corev1.ConditionFalse, corev1.ConditionTrue
	if !podFacts(pod, "", &patience{now: start}).Ready {
		t.Error("not Ready by its containers")
	}
}

func TestPodThatEndedWithoutAnErrorHasEndedAllTheSame(t *testing.T) {
	pod := aPod("c1-1")
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses[0].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 0}}
	if got := podFacts(pod, "", &patience{now: start}); got.Ended != "Succeeded" || got.Running {
		t.Errorf("%+v", got)
	}
}
