package objects

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "cnmsql.co/operator/api/v1alpha1"
)

// RoleServices are the Services that applications connect to: the default ones that are not disabled, then those that the
// user adds. rw leads to Ready Pods only; ro and r also to Pods that are not Ready, without a bound of the replicas' lag,
// but carry the label of routing, which is taken from a Pod that must not be reached.
func RoleServices(c *api.Cluster) []*corev1.Service {
	var list []*corev1.Service
	for _, role := range []api.ServiceSelector{api.ServiceRW, api.ServiceRO, api.ServiceR} {
		if !c.ServiceDisabled(role) {
			list = append(list, roleService(c, c.ServiceName(string(role)), role, c.ServiceTemplate()))
		}
	}
	for _, more := range c.AdditionalServices() {
		list = append(list, additionalService(c, more))
	}
	return list
}

func additionalService(c *api.Cluster, more api.ManagedService) *corev1.Service {
	name := c.ServiceName(more.Name)
	if more.UpdateStrategy == api.ServiceReplace {
		bare := c.DeepCopy()
		bare.Spec.InheritedMetadata = nil
		return roleService(bare, name, more.SelectorType, more.ServiceTemplate)
	}
	return roleService(c, name, more.SelectorType, c.ServiceTemplate(), more.ServiceTemplate)
}

// roleService is a Service for a role, with the templates laid over it in turn.
func roleService(c *api.Cluster, name string, role api.ServiceSelector, templates ...api.ServiceTemplate) *corev1.Service {
	s := &corev1.Service{ObjectMeta: meta(c, name)}
	s.Spec.Type = corev1.ServiceTypeClusterIP
	// One that is held back by the bound is out of service by not being Ready.
	s.Spec.PublishNotReadyAddresses = role != api.ServiceRW && c.MaxReadyLag() == 0
	for _, t := range templates {
		lay(&s.ObjectMeta, t.Metadata)
		fill(&s.Spec, t.Spec)
	}
	s.Labels = labels(c, "", s.Labels)
	s.Annotations = annotations(s.Annotations)
	s.Spec.Selector = c.Selector()
	s.Spec.Selector[api.LabelRoutable] = "true"
	switch role {
	case api.ServiceRW:
		s.Spec.Selector[api.LabelRole] = api.RolePrimary
	case api.ServiceRO:
		s.Spec.Selector[api.LabelRole] = api.RoleReplica
	case api.ServiceR:
	}
	s.Spec.Ports = []corev1.ServicePort{servicePort("mysql", api.PortMySQL)}
	return s
}

// lay puts a user's labels and annotations over others.
func lay(m *metav1.ObjectMeta, user api.EmbeddedMetadata) {
	if len(user.Annotations) > 0 && m.Annotations == nil {
		m.Annotations = map[string]string{}
	}
	maps.Copy(m.Labels, user.Labels)
	maps.Copy(m.Annotations, user.Annotations)
}

// fill takes over what a template says. What it does not say stays.
func fill(s *corev1.ServiceSpec, t api.ServiceTemplateSpec) {
	take(&s.Type, t.Type)
	take(&s.ExternalTrafficPolicy, t.ExternalTrafficPolicy)
	take(&s.SessionAffinity, t.SessionAffinity)
	take(&s.LoadBalancerClass, t.LoadBalancerClass)
	take(&s.ExternalName, t.ExternalName)
	take(&s.HealthCheckNodePort, t.HealthCheckNodePort)
	if t.LoadBalancerSourceRanges != nil {
		s.LoadBalancerSourceRanges = t.LoadBalancerSourceRanges
	}
}

func take[T comparable](field *T, value T) {
	var none T
	if value != none {
		*field = value
	}
}

// InstanceService gives one instance a name in DNS, whatever its state: replicas, the operator and other
// instances reach it by that.
func InstanceService(c *api.Cluster, instance string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: instanceMeta(c, instance, instance)}
	s.Spec.Type = corev1.ServiceTypeClusterIP
	s.Spec.ClusterIP = corev1.ClusterIPNone
	s.Spec.PublishNotReadyAddresses = true
	s.Spec.Selector = c.Selector()
	s.Spec.Selector[api.LabelInstance] = instance
	s.Spec.Ports = []corev1.ServicePort{servicePort("mysql", api.PortMySQL), servicePort("control", api.PortControl)}
	return s
}

func servicePort(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Port: number, TargetPort: intstr.FromString(name), Protocol: corev1.ProtocolTCP}
}
