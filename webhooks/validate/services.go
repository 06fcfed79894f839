package validate

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "cnmsql.co/operator/api/v1alpha1"
)

// managedServices: each Service can be made, under a name of its own.
func managedServices(c *api.Cluster) field.ErrorList {
	if c.Spec.Managed == nil || c.Spec.Managed.Services == nil {
		return nil
	}
	s := c.Spec.Managed.Services
	path := spec.Child("managed", "services")
	var errs field.ErrorList
	for n, role := range s.DisabledDefaultServices {
		switch at := path.Child("disabledDefaultServices").Index(n); role {
		case "ro", "r":
		case "rw":
			errs = append(errs, field.Invalid(at, role, "the Service rw cannot be disabled: it is how applications write"))
		default:
			errs = append(errs, field.NotSupported(at, role, []api.DefaultService{"ro", "r"}))
		}
	}
	if t := s.Template; t != nil {
		errs = append(errs, serviceTemplate(path.Child("template"), t.Spec)...)
		if t.Spec.Type == corev1.ServiceTypeExternalName {
			errs = append(errs, field.Invalid(path.Child("template", "spec", "type"), t.Spec.Type, "the default Services lead to the instances: use this type for an additional Service"))
		}
	}
	for n := range s.Additional {
		more := &s.Additional[n]
		at := path.Child("additional").Index(n)
		errs = append(errs, additionalName(c, at.Child("name"), more.Name)...)
		if slices.ContainsFunc(s.Additional[:n], func(before api.ManagedService) bool { return before.Name == more.Name }) {
			errs = append(errs, field.Duplicate(at.Child("name"), more.Name))
		}
		if roles := []api.ServiceSelector{api.ServiceRW, api.ServiceRO, api.ServiceR}; !slices.Contains(roles, more.SelectorType) {
			errs = append(errs, field.NotSupported(at.Child("selectorType"), more.SelectorType, roles))
		}
		if ways := []api.ServiceUpdateStrategy{api.ServicePatch, api.ServiceReplace}; !slices.Contains(ways, more.UpdateStrategy) {
			errs = append(errs, field.NotSupported(at.Child("updateStrategy"), more.UpdateStrategy, ways))
		}
		errs = append(errs, serviceTemplate(at.Child("serviceTemplate"), more.ServiceTemplate.Spec)...)
	}
	return errs
}

func additionalName(c *api.Cluster, path *field.Path, name string) field.ErrorList {
	var errs field.ErrorList
	if slices.Contains([]string{"rw", "ro", "r"}, name) {
		errs = append(errs, field.Invalid(path, name, "is the name of a default Service: choose another"))
	}
	// Begun with a digit, it could be the name of an instance's Service.
	for _, problem := range validation.IsDNS1035Label(name) {
		errs = append(errs, field.Invalid(path, name, problem))
	}
	if full := c.ServiceName(name); len(full) > validation.DNS1035LabelMaxLength {
		errs = append(errs, field.Invalid(path, name, fmt.Sprintf("makes the name %s, which has more than %d characters: shorten it", full, validation.DNS1035LabelMaxLength)))
	}
	return errs
}

// serviceTemplate: what only some types of Services have is asked of those alone.
func serviceTemplate(path *field.Path, s api.ServiceTemplateSpec) field.ErrorList {
	path = path.Child("spec")
	var errs field.ErrorList
	needs := func(name string, given bool, types ...corev1.ServiceType) {
		if given && !slices.Contains(types, s.Type) {
			errs = append(errs, field.Invalid(path.Child(name), name, fmt.Sprintf("has no effect in a Service of type %s: set type to one of %v, or leave it out", or(s.Type, corev1.ServiceTypeClusterIP), types)))
		}
	}
	const lb = corev1.ServiceTypeLoadBalancer
	needs("externalTrafficPolicy", s.ExternalTrafficPolicy != "", lb, corev1.ServiceTypeNodePort)
	needs("loadBalancerSourceRanges", len(s.LoadBalancerSourceRanges) > 0, lb)
	needs("loadBalancerClass", s.LoadBalancerClass != nil, lb)
	needs("healthCheckNodePort", s.HealthCheckNodePort != 0, lb)
	needs("externalName", s.ExternalName != "", corev1.ServiceTypeExternalName)
	if s.HealthCheckNodePort != 0 && s.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		errs = append(errs, field.Invalid(path.Child("healthCheckNodePort"), s.HealthCheckNodePort, "needs externalTrafficPolicy: Local"))
	}
	if s.Type == corev1.ServiceTypeExternalName && s.ExternalName == "" {
		errs = append(errs, field.Required(path.Child("externalName"), "a Service of type ExternalName leads there"))
	}
	for n, text := range s.LoadBalancerSourceRanges {
		if _, err := netip.ParsePrefix(text); err != nil {
			errs = append(errs, field.Invalid(path.Child("loadBalancerSourceRanges").Index(n), text, "use a range of addresses such as 10.0.0.0/8"))
		}
	}
	return errs
}

func or(given, otherwise corev1.ServiceType) corev1.ServiceType {
	if given == "" {
		return otherwise
	}
	return given
}
