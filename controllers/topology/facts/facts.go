package facts

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
	"cnmsql.co/operator/controllers/topology/core"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/webhooks/validate"
)

// Facts are what was read of a Cluster. A reader fills in what it can; what stays empty is not known.
type Facts struct {
	// Now is the reader's clock, NewAttempt a fresh id for a transition.
	Now        time.Time
	NewAttempt string
	// Cluster is the object with its defaults filled in.
	Cluster *api.Cluster
	// Objects are the options by which Pods would be made now.
	Objects objects.Options
	// Secrets are those of SecretNames that exist.
	Secrets map[string]bool
	// Classes are the storage classes, needed when WaitsForVolume; nil when they may not be read.
	Classes *storagev1.StorageClassList
	// Cordoned are those of Nodes that take no more Pods.
	Cordoned map[string]bool
	Lease    core.Lease
	// Fresh tells that every instance was asked anew after the Lease was looked at.
	Fresh bool
	// Sights are what is known of each instance's manager.
	Sights map[string]Sight
	// Refusals are what the API server refuses to do for an instance.
	Refusals map[string]Refusal

	pods   map[string]*corev1.Pod
	claims map[string]*corev1.PersistentVolumeClaim
}

// Sight is what is known of one instance's manager.
type Sight struct {
	// Report is the last one; nil while the instance is silent. Age is how long ago it arrived.
	Report *protocol.Report
	Age    time.Duration
	// Asked tells that an attempt to reach the present Pod has finished, one way or the other.
	Asked bool
}

// Refusal is what the API server refuses and what to do about it, with a condition's reason.
type Refusal struct{ Text, Reason string }

// Of begins the facts of a Cluster as it was read, with the Pods and volume claims that carry its label.
func Of(read *api.Cluster, pods []corev1.Pod, claims []corev1.PersistentVolumeClaim) *Facts {
	f := &Facts{Cluster: read.DeepCopy(), pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}}
	f.Cluster.Default()
	for i := range pods {
		// A Pod of an earlier Cluster of this name is on its way out and not ours.
		if metav1.IsControlledBy(&pods[i], f.Cluster) {
			f.pods[pods[i].Name] = &pods[i]
		}
	}
	for i := range claims {
		// One that lost its owner, or had another, holds data all the same.
		f.claims[claims[i].Name] = &claims[i]
	}
	return f
}

// Pods are the Cluster's own, by name.
func (f *Facts) Pods() map[string]*corev1.Pod { return f.pods }

// Nodes are those that the Pods are on.
func (f *Facts) Nodes() []string {
	var all []string
	for _, pod := range f.pods {
		if pod.Spec.NodeName != "" {
			all = append(all, pod.Spec.NodeName)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Names are all instances that the status, a Pod or a claim names, by ordinal.
func (f *Facts) Names() []string {
	all := slices.Clone(f.Cluster.Status.InstanceNames)
	for name := range f.pods {
		all = append(all, name)
	}
	for name, claim := range f.claims {
		all = append(all, name)
		if instance := claim.Labels[api.LabelInstance]; name == api.BinlogPVCName(instance) {
			all = append(all, instance)
		}
	}
	all = slices.DeleteFunc(all, func(name string) bool { _, ok := f.Cluster.InstanceOrdinal(name); return !ok })
	slices.SortFunc(all, func(a, b string) int {
		m, _ := f.Cluster.InstanceOrdinal(a)
		n, _ := f.Cluster.InstanceOrdinal(b)
		return int(m - n)
	})
	return slices.Compact(all)
}

// SecretNames are the Secrets whose existence matters: that of the whole first, then each instance's.
func (f *Facts) SecretNames() []string {
	all := f.sharedSecrets()
	for _, name := range f.Names() {
		all = append(all, api.ServerTLSSecretName(name))
	}
	return all
}

func (f *Facts) sharedSecrets() []string {
	return []string{f.Cluster.CASecretName(), f.Cluster.ClientTLSSecretName(), f.Cluster.ReplicationTLSSecretName()}
}

// WaitsForVolume tells that a claim has no volume yet, so that the storage classes tell why.
func (f *Facts) WaitsForVolume() bool {
	for _, claim := range f.claims {
		if waits(claim) {
			return true
		}
	}
	return false
}

// Snapshot is what the facts come to.
func (f *Facts) Snapshot() core.Snapshot {
	s := core.Snapshot{
		Now: f.Now, NewAttempt: f.NewAttempt, Cluster: f.Cluster, Lease: f.Lease, Fresh: f.Fresh, NotReadyYet: f.notReadyYet(),
	}
	if errs := validate.Cluster(f.Cluster); len(errs) > 0 {
		s.SpecProblem = errs.ToAggregate().Error()
	}
	waiting, classes := &patience{now: f.Now}, classesOf(f.Classes)
	for _, name := range f.Names() {
		s.Instances = append(s.Instances, f.instance(name, classes, waiting))
	}
	s.Patience = waiting.again
	return s
}

// notReadyYet says what instances need before their Pods can be made and is not there.
func (f *Facts) notReadyYet() string {
	conditions := f.Cluster.Status.Conditions
	if ready := meta.FindStatusCondition(conditions, api.ConditionCredentialsReady); ready == nil || ready.Status != metav1.ConditionTrue {
		if ready != nil && ready.Message != "" {
			return "credentials: " + ready.Message
		}
		return "credentials"
	}
	for _, name := range f.sharedSecrets() {
		if f.Secrets[name] {
			continue
		}
		if ready := meta.FindStatusCondition(conditions, api.ConditionCertificatesReady); ready != nil && ready.Status == metav1.ConditionFalse {
			return "certificates: " + ready.Message
		}
		return "certificates: the Secret " + name
	}
	return ""
}

// instance is what is known of one instance.
func (f *Facts) instance(name string, classes *storageClasses, w *patience) core.Instance {
	ordinal, _ := f.Cluster.InstanceOrdinal(name)
	refused := f.Refusals[name]
	i := core.Instance{
		Name: name, Ordinal: ordinal, CertificateReady: f.Secrets[api.ServerTLSSecretName(name)],
		Refused: refused.Text, RefusedReason: refused.Reason,
	}
	pod := f.pods[name]
	if pod != nil {
		i.Pod = podFacts(pod, objects.TemplateHash(f.Cluster, name, f.Objects), w)
		i.Pod.Cordoned = f.Cordoned[pod.Spec.NodeName]
		sight := f.Sights[name]
		i.Report, i.Age, i.Asked = sight.Report, sight.Age, sight.Asked
	}
	claims := []string{name}
	if f.Cluster.Spec.BinlogStorage != nil {
		claims = append(claims, api.BinlogPVCName(name))
	}
	for _, claim := range claims {
		if found := f.claims[claim]; found != nil {
			i.Volumes = append(i.Volumes, classes.volumeFacts(f.Cluster, found, pod, w))
		} else {
			i.MissingVolumes = append(i.MissingVolumes, claim)
		}
	}
	return i
}
