package framework

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
)

// namespaceWithin is how long each part of deleting a namespace may take.
const namespaceWithin = 2 * time.Minute

// FreshNamespace makes a namespace, after one of an earlier run is gone.
func (e *Environment) FreshNamespace(ctx context.Context, name string, labels map[string]string) error {
	if err := e.DeleteNamespace(ctx, name); err != nil {
		return err
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	return Await(ctx, "namespace "+name, namespaceWithin, func(ctx context.Context) (bool, string, error) {
		err := e.Client.Create(ctx, ns.DeepCopy())
		if apierrors.IsAlreadyExists(err) {
			return false, "the one of an earlier run is still being deleted", nil
		}
		return err == nil, "", err
	})
}

// DeleteNamespace deletes the Clusters in a namespace, and when their Pods are gone the namespace. While there are Pods,
// Kubernetes looks at a namespace that is being deleted only after half of their grace period, which is long for
// database servers.
func (e *Environment) DeleteNamespace(ctx context.Context, name string) error {
	// Where there is no namespace, there may be no kind Cluster yet.
	err := e.Client.Get(ctx, client.ObjectKey{Name: name}, &corev1.Namespace{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading namespace %s: %w", name, err)
	}
	in := client.InNamespace(name)
	if err := e.Client.DeleteAllOf(ctx, &api.Cluster{}, in); err != nil {
		return fmt.Errorf("deleting the Clusters in %s: %w", name, err)
	}
	err = Await(ctx, "the Pods of Clusters in "+name+" to go", namespaceWithin, func(ctx context.Context) (bool, string, error) {
		pods := &corev1.PodList{}
		err := e.Client.List(ctx, pods, in, client.HasLabels{api.LabelCluster})
		return len(pods.Items) == 0, fmt.Sprintf("%d Pods", len(pods.Items)), err
	})
	if err != nil {
		return err
	}
	err = e.Client.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	return client.IgnoreNotFound(err)
}
