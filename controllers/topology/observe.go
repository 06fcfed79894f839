package topology

import (
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/observer"
	"cnmsql.co/operator/controllers/objects"
	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/webhooks/validate"
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
	c := read.DeepCopy()
	c.Default()
	s := core.Snapshot{NewAttempt: r.NewAttempt(), Cluster: c}
	if errs := validate.Cluster(c); len(errs) > 0 {
		s.SpecProblem = errs.ToAggregate().Error()
	}
	var err error
	if s.NotReadyYet, err = r.notReadyYet(ctx, c); err != nil {
		return s, err
	}
	lease, known, err := r.lease(ctx, r.Client, c)
	if err != nil {
		return s, err
	}
	o, err := r.objects(ctx, c)
	if err != nil {
		return s, err
	}
	if err := r.follow(ctx, c, o.pods); err != nil {
		return s, err
	}
	s.Now = r.Now()
	if known {
		s.Lease = lease.snapshot(s.Now)
	}
	s.Fresh = asked != nil && known && lease.same(asked.lease)
	waiting := &patience{now: s.Now}
	for _, name := range o.names(c) {
		i, err := r.instance(ctx, c, name, o, waiting)
		if err != nil {
			return s, err
		}
		i.Refused, i.RefusedReason = r.refusals.shown(client.ObjectKeyFromObject(c), name)
		r.hear(c, &i, asked)
		s.Instances = append(s.Instances, i)
	}
	s.Patience = waiting.again
	return s, nil
}

// notReadyYet says what instances need before their Pods can be made and is not there.
func (r *Reconciler) notReadyYet(ctx context.Context, c *api.Cluster) (string, error) {
	if ready := meta.FindStatusCondition(c.Status.Conditions, api.ConditionCredentialsReady); ready == nil || ready.Status != metav1.ConditionTrue {
		if ready != nil && ready.Message != "" {
			return "credentials: " + ready.Message, nil
		}
		return "credentials", nil
	}
	for _, name := range []string{c.CASecretName(), c.ClientTLSSecretName(), c.ReplicationTLSSecretName()} {
		m, err := r.secret(ctx, c, name)
		if err != nil {
			return "", err
		}
		if m != nil {
			continue
		}
		if ready := meta.FindStatusCondition(c.Status.Conditions, api.ConditionCertificatesReady); ready != nil && ready.Status == metav1.ConditionFalse {
			return "certificates: " + ready.Message, nil
		}
		return "certificates: the Secret " + name, nil
	}
	return "", nil
}

// owned are the Cluster's objects, by instance or by name.
type owned struct {
	pods   map[string]*corev1.Pod
	claims map[string]*corev1.PersistentVolumeClaim
	// classes are the storage classes, read when a claim waits for its volume.
	classes *storageClasses
}

func (r *Reconciler) objects(ctx context.Context, c *api.Cluster) (owned, error) {
	o := owned{pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}}
	ours := []client.ListOption{client.InNamespace(c.Namespace), client.MatchingLabels{api.LabelCluster: c.Name}}
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, ours...); err != nil {
		return o, fmt.Errorf("listing Pods: %w", err)
	}
	for i := range pods.Items {
		// A Pod of an earlier Cluster of this name is on its way out and not ours.
		if metav1.IsControlledBy(&pods.Items[i], c) {
			o.pods[pods.Items[i].Name] = &pods.Items[i]
		}
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.Client.List(ctx, claims, ours...); err != nil {
		return o, fmt.Errorf("listing volume claims: %w", err)
	}
	for i := range claims.Items {
		// One that lost its owner, or had another, holds data all the same.
		o.claims[claims.Items[i].Name] = &claims.Items[i]
	}
	if !slices.ContainsFunc(claims.Items, waits) {
		return o, nil
	}
	classes, err := r.storageClasses(ctx)
	o.classes = classes
	return o, err
}

// names are all instances that the status, a Pod or a claim names, by ordinal.
func (o owned) names(c *api.Cluster) []string {
	all := slices.Clone(c.Status.InstanceNames)
	for name := range o.pods {
		all = append(all, name)
	}
	for name, claim := range o.claims {
		all = append(all, name)
		if instance := claim.Labels[api.LabelInstance]; name == api.BinlogPVCName(instance) {
			all = append(all, instance)
		}
	}
	all = slices.DeleteFunc(all, func(name string) bool { _, ok := c.InstanceOrdinal(name); return !ok })
	slices.SortFunc(all, func(a, b string) int {
		m, _ := c.InstanceOrdinal(a)
		n, _ := c.InstanceOrdinal(b)
		return int(m - n)
	})
	return slices.Compact(all)
}

// instance is what the API server knows of one instance.
func (r *Reconciler) instance(ctx context.Context, c *api.Cluster, name string, o owned, w *patience) (core.Instance, error) {
	ordinal, _ := c.InstanceOrdinal(name)
	i := core.Instance{Name: name, Ordinal: ordinal}
	pod := o.pods[name]
	if pod != nil {
		i.Pod = podFacts(pod, objects.TemplateHash(c, name, r.Objects), w)
		var err error
		if i.Pod.Cordoned, err = r.isCordoned(ctx, pod); err != nil {
			return i, err
		}
	}
	claims := []string{name}
	if c.Spec.BinlogStorage != nil {
		claims = append(claims, api.BinlogPVCName(name))
	}
	for _, claim := range claims {
		if found := o.claims[claim]; found != nil {
			i.Volumes = append(i.Volumes, o.classes.volumeFacts(c, found, pod, w))
		} else {
			i.MissingVolumes = append(i.MissingVolumes, claim)
		}
	}
	certificate, err := r.secret(ctx, c, api.ServerTLSSecretName(name))
	i.CertificateReady = certificate != nil
	return i, err
}

// hear adds what the instance's manager says. Of an instance that was asked anew and did not answer in time,
// what its stream said of the process still holds; what was read from its server does not.
func (r *Reconciler) hear(c *api.Cluster, i *core.Instance, asked *answers) {
	if i.Pod == nil {
		return
	}
	sight := r.Instances.Look(client.ObjectKeyFromObject(c), i.Name)
	i.Report, i.Age, i.Asked = sight.Report, sight.Age, sight.Asked
	if asked == nil {
		return
	}
	if answer := asked.reports[i.Name]; answer != nil && answer.PodUID == i.Pod.UID {
		i.Report, i.Age, i.Asked = answer, min(i.Age, time.Second), true
		return
	}
	if i.Report != nil && i.Report.MySQL != nil {
		silent := *i.Report
		silent.MySQL = nil
		i.Report = &silent
	}
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
