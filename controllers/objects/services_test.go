package objects_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
)

func TestABoundOfTheLagLeavesReadinessToDecide(t *testing.T) {
	c := minimal()
	published := func() (names []string) {
		for _, s := range objects.RoleServices(c) {
			if s.Spec.PublishNotReadyAddresses {
				names = append(names, s.Name)
			}
		}
		return names
	}
	if got := published(); !slices.Equal(got, []string{"c1-ro", "c1-r"}) {
		t.Errorf("without a bound %v lead to Pods that are not Ready", got)
	}
	c.Spec.Replication.MaxReadyLag = &metav1.Duration{Duration: 30 * time.Second}
	if got := published(); len(got) > 0 {
		t.Errorf("with a bound %v lead to Pods that are not Ready", got)
	}
}

func TestEachFieldOfATemplateReachesTheService(t *testing.T) {
	c := minimal()
	template := api.ServiceTemplateSpec{
		Type: corev1.ServiceTypeLoadBalancer, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, SessionAffinity: corev1.ServiceAffinityClientIP,
		LoadBalancerSourceRanges: []string{"10.0.0.0/8"}, LoadBalancerClass: new("internal"), ExternalName: "db.example.com", HealthCheckNodePort: 31000,
	}
	c.Spec.Managed = &api.ManagedConfiguration{Services: &api.ManagedServices{Template: &api.ServiceTemplate{Spec: template}}}
	for _, s := range objects.RoleServices(c) {
		got := api.ServiceTemplateSpec{
			Type: s.Spec.Type, ExternalTrafficPolicy: s.Spec.ExternalTrafficPolicy, SessionAffinity: s.Spec.SessionAffinity,
			LoadBalancerSourceRanges: s.Spec.LoadBalancerSourceRanges, LoadBalancerClass: s.Spec.LoadBalancerClass,
			ExternalName: s.Spec.ExternalName, HealthCheckNodePort: s.Spec.HealthCheckNodePort,
		}
		if !equalTemplates(got, template) || len(s.Spec.Ports) != 1 || s.Spec.Ports[0].Port != api.PortMySQL {
			t.Errorf("%s: %+v", s.Name, s.Spec)
		}
	}
}

func equalTemplates(a, b api.ServiceTemplateSpec) bool {
	return slices.Equal(a.LoadBalancerSourceRanges, b.LoadBalancerSourceRanges) && *a.LoadBalancerClass == *b.LoadBalancerClass &&
		a.Type == b.Type && a.ExternalTrafficPolicy == b.ExternalTrafficPolicy && a.SessionAffinity == b.SessionAffinity &&
		a.ExternalName == b.ExternalName && a.HealthCheckNodePort == b.HealthCheckNodePort
}
