package topology

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/observer"
	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/controllers/topology/facts"
	"cnmsql.co/operator/instance/protocol"
)

// answers are what instances said when they were asked anew, after the Lease had been looked at.
type answers struct {
	lease   leaseRecord
	reports map[string]*protocol.Report
}

// refresh looks at the Lease in the API server itself (a watch that stands still must not make a Lease look
// expired), and then asks every instance.
func (r *Reconciler) refresh(ctx context.Context, c *api.Cluster) (*answers, error) {
	lease, known, err := r.lease(ctx, r.Live, c)
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, fmt.Errorf("the Lease is gone: %w", errStale)
	}
	return &answers{lease: lease, reports: r.Instances.Refresh(ctx, client.ObjectKeyFromObject(c))}, nil
}

// lease reads the primary Lease and says when it was seen to change; known is false when there is none that
// belongs to the Cluster.
func (r *Reconciler) lease(ctx context.Context, from client.Reader, c *api.Cluster) (l leaseRecord, known bool, err error) {
	lease := &coordinationv1.Lease{}
	err = from.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.LeaseName()}, lease)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(lease, c) {
		return leaseRecord{}, false, nil
	}
	if err != nil {
		return leaseRecord{}, false, fmt.Errorf("reading Lease %s: %w", c.LeaseName(), err)
	}
	return r.leases.saw(client.ObjectKeyFromObject(c), lease, r.Now()), true, nil
}

// observe reads everything that a rule may look at. asked is nil unless the instances were asked anew.
func (r *Reconciler) observe(ctx context.Context, read *api.Cluster, asked *answers) (core.Snapshot, error) {
	lease, known, err := r.lease(ctx, r.Client, read)
	if err != nil {
		return core.Snapshot{}, err
	}
	f, err := r.objects(ctx, read)
	if err != nil {
		return core.Snapshot{}, err
	}
	if err := r.follow(ctx, f.Cluster, f.Pods()); err != nil {
		return core.Snapshot{}, err
	}
	f.Now, f.NewAttempt = r.Now(), r.NewAttempt()
	if known {
		f.Lease = lease.snapshot(f.Now)
	}
	f.Fresh = asked != nil && known && lease.same(asked.lease)
	key := client.ObjectKeyFromObject(read)
	for _, name := range f.Names() {
		text, reason := r.refusals.shown(key, name)
		f.Refusals[name] = facts.Refusal{Text: text, Reason: reason}
	}
	for name, pod := range f.Pods() {
		f.Sights[name] = r.hear(key, pod, asked)
	}
	return f.Snapshot(), nil
}

// objects reads what the API server knows of a Cluster.
func (r *Reconciler) objects(ctx context.Context, read *api.Cluster) (*facts.Facts, error) {
	ours := []client.ListOption{client.InNamespace(read.Namespace), client.MatchingLabels{api.LabelCluster: read.Name}}
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, ours...); err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.Client.List(ctx, claims, ours...); err != nil {
		return nil, fmt.Errorf("listing volume claims: %w", err)
	}
	f := facts.Of(read, pods.Items, claims.Items)
	f.Objects, f.Secrets, f.Cordoned = r.Objects, map[string]bool{}, map[string]bool{}
	f.Sights, f.Refusals = map[string]facts.Sight{}, map[string]facts.Refusal{}
	var err error
	for _, name := range f.SecretNames() {
		m, err := r.secret(ctx, read, name)
		if err != nil {
			return nil, err
		}
		f.Secrets[name] = m != nil
	}
	for _, node := range f.Nodes() {
		if f.Cordoned[node], err = r.isCordoned(ctx, node); err != nil {
			return nil, err
		}
	}
	if f.WaitsForVolume() {
		f.Classes, err = r.storageClasses(ctx)
	}
	return f, err
}

// storageClasses are read from the API server itself: rarely, and few. An operator that may not see them
// does without.
func (r *Reconciler) storageClasses(ctx context.Context) (*storagev1.StorageClassList, error) {
	list := &storagev1.StorageClassList{}
	err := r.Live.List(ctx, list)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing storage classes: %w", err)
	}
	return list, nil
}

// hear is what an instance's manager says. Of an instance that was asked anew and did not answer in time,
// what its stream said of the process still holds; what was read from its server does not.
func (r *Reconciler) hear(cluster types.NamespacedName, pod *corev1.Pod, asked *answers) facts.Sight {
	seen := r.Instances.Look(cluster, pod.Name)
	s := facts.Sight{Report: seen.Report, Age: seen.Age, Asked: seen.Asked}
	if asked == nil {
		return s
	}
	if answer := asked.reports[pod.Name]; answer != nil && answer.PodUID == string(pod.UID) {
		return facts.Sight{Report: answer, Age: min(s.Age, time.Second), Asked: true}
	}
	if s.Report != nil && s.Report.MySQL != nil {
		silent := *s.Report
		silent.MySQL = nil
		s.Report = &silent
	}
	return s
}

// follow listens to the Pods that there are.
func (r *Reconciler) follow(ctx context.Context, c *api.Cluster, pods map[string]*corev1.Pod) error {
	certificate, ok, err := r.clientCertificate(ctx, c)
	if err != nil || !ok {
		return err
	}
	var targets []observer.Target
	for name, pod := range pods {
		if pod.Status.Phase != corev1.PodFailed && pod.Status.Phase != corev1.PodSucceeded {
			targets = append(targets, observer.Target{Instance: name, PodUID: string(pod.UID), PodIP: pod.Status.PodIP})
		}
	}
	if err := r.Instances.Follow(client.ObjectKeyFromObject(c), string(c.UID), certificate, targets); err != nil {
		// Without a usable certificate all instances are silent, which is a fact like any other.
		ctrl.LoggerFrom(ctx).Error(err, "cannot listen to the instances", "secret", c.ClientTLSSecretName())
	}
	return nil
}
