package objects

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// LabelManagedBy and ManagedBy mark what the operator makes, for people and their tools.
const (
	LabelManagedBy = "app.kubernetes.io/managed-by"
	ManagedBy      = "cnmsql"
)

// meta is the metadata of an object that belongs to the Cluster as a whole.
func meta(c *api.Cluster, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:       c.Namespace,
		Name:            name,
		Labels:          Labels(c, ""),
		Annotations:     Annotations(c),
		OwnerReferences: []metav1.OwnerReference{Owner(c)},
	}
}

// instanceMeta is the metadata of an object that belongs to one instance.
func instanceMeta(c *api.Cluster, instance, name string) metav1.ObjectMeta {
	m := meta(c, name)
	m.Labels = Labels(c, instance)
	return m
}

// Owner is the reference from an object to its Cluster.
func Owner(c *api.Cluster) metav1.OwnerReference {
	return *metav1.NewControllerRef(c, api.GroupVersion.WithKind("Cluster"))
}

// Labels are the labels of an object of the Cluster, or of one of its instances when that is given: the
// inherited ones, then ours over them. The labels of routing (role, routable) are never among them.
func Labels(c *api.Cluster, instance string) map[string]string {
	return labels(c, instance, inherited(c).Labels)
}

// labels lays ours over the user's, which it does not change.
func labels(c *api.Cluster, instance string, user map[string]string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, user)
	delete(labels, api.LabelInstance)
	delete(labels, api.LabelRole)
	delete(labels, api.LabelRoutable)
	labels[LabelManagedBy] = ManagedBy
	labels[api.LabelCluster] = c.Name
	if instance != "" {
		labels[api.LabelInstance] = instance
	}
	return labels
}

// Annotations are the inherited annotations without those that are ours; nil when there are none.
func Annotations(c *api.Cluster) map[string]string {
	return annotations(inherited(c).Annotations)
}

func inherited(c *api.Cluster) api.EmbeddedMetadata {
	if m := c.Spec.InheritedMetadata; m != nil {
		return *m
	}
	return api.EmbeddedMetadata{}
}

// annotations are the user's without those that are ours; nil when there are none.
func annotations(user map[string]string) map[string]string {
	if len(user) == 0 {
		return nil
	}
	annotations := maps.Clone(user)
	for _, ours := range []string{api.AnnotationTemplateHash, api.AnnotationSpecHash, api.AnnotationHandoffGTID, api.AnnotationHandoffAttempt, api.AnnotationReasserted} {
		delete(annotations, ours)
	}
	return annotations
}

// Instances are the names of the instances that exist and of those that are to be made next, by ordinal.
func Instances(c *api.Cluster) []string {
	names := slices.Clone(c.Status.InstanceNames)
	for next := latest(c) + 1; len(names) < int(c.Spec.Instances); next++ {
		names = append(names, c.InstanceName(next))
	}
	return names
}

// Removed tells whether an instance was taken out of the Cluster, for good since its number is not given again.
// What was made for it alone may go as soon as it also has no Pod. It is false for an instance that is still to
// be made, for one that a change of primary concerns, and for all when the status may have been lost.
func Removed(c *api.Cluster, instance string) bool {
	s := &c.Status
	ordinal, ours := c.InstanceOrdinal(instance)
	if !ours || len(s.InstanceNames) == 0 || s.CurrentPrimary == "" {
		return false
	}
	if t := s.PrimaryTransition; t != nil && (instance == t.From || instance == t.To) {
		return false
	}
	return ordinal <= latest(c) && instance != s.CurrentPrimary && !slices.Contains(s.InstanceNames, instance)
}

// latest is the highest ordinal that was ever given.
func latest(c *api.Cluster) int32 {
	n := c.Status.LatestGeneratedNode
	for _, name := range c.Status.InstanceNames {
		if ordinal, ok := c.InstanceOrdinal(name); ok {
			n = max(n, ordinal)
		}
	}
	return n
}
