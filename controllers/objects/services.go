package objects

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "cnmsql.co/operator/api/v1alpha1"
)

// The role Services: rw leads to the primary, ro to replicas, r to any instance.
const (
	ServiceRW = "rw"
	ServiceRO = "ro"
	ServiceR  = "r"
)

// RoleServices are the Services that applications connect to. rw leads to Ready Pods only; ro and r also to
// Pods that are not Ready but carry the label of routing, which is taken from a Pod that must not be reached.
func RoleServices(c *api.Cluster) []*corev1.Service {
	routable := map[string]string{api.LabelRoutable: "true"}
	return []*corev1.Service{
		roleService(c, ServiceRW, false, map[string]string{api.LabelRoutable: "true", api.LabelRole: api.RolePrimary}),
		roleService(c, ServiceRO, true, map[string]string{api.LabelRoutable: "true", api.LabelRole: api.RoleReplica}),
		roleService(c, ServiceR, true, routable),
	}
}

func roleService(c *api.Cluster, role string, notReady bool, selector map[string]string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: meta(c, c.ServiceName(role))}
	s.Spec.Type = corev1.ServiceTypeClusterIP
	s.Spec.PublishNotReadyAddresses = notReady
	s.Spec.Selector = c.Selector()
	maps.Copy(s.Spec.Selector, selector)
	s.Spec.Ports = []corev1.ServicePort{servicePort("mysql", api.PortMySQL)}
	return s
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
