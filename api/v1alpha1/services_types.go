package v1alpha1

import corev1 "k8s.io/api/core/v1"

// ManagedConfiguration is what the operator keeps besides the instances.
type ManagedConfiguration struct {
	// Services is what Services applications connect to.
	// +optional
	Services *ManagedServices `json:"services,omitempty"`
}

// ManagedServices changes the Services <cluster>-rw, -ro and -r, and adds others. Selectors and the port mysql:3306 are
// the operator's.
type ManagedServices struct {
	// DisabledDefaultServices are not made: ro and r. The Service rw always exists.
	// +kubebuilder:validation:MaxItems=2
	// +listType=set
	// +optional
	DisabledDefaultServices []DefaultService `json:"disabledDefaultServices,omitempty"`

	// Template is laid over the default Services.
	// +kubebuilder:validation:XValidation:rule="!has(self.spec) || !has(self.spec.type) || self.spec.type != 'ExternalName'",message="the default Services lead to the instances: use ExternalName for an additional Service"
	// +optional
	Template *ServiceTemplate `json:"template,omitempty"`

	// Additional Services, each of them <cluster>-<name>.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Additional []ManagedService `json:"additional,omitempty"`
}

// DefaultService is a default Service that can be left out.
// +kubebuilder:validation:Enum=ro;r
type DefaultService string

// ServiceSelector is the role that a Service leads to.
// +kubebuilder:validation:Enum=rw;ro;r
type ServiceSelector string

// The roles: rw leads to the primary, ro to the replicas, r to all instances.
const (
	ServiceRW ServiceSelector = "rw"
	ServiceRO ServiceSelector = "ro"
	ServiceR  ServiceSelector = "r"
)

// ServiceUpdateStrategy is how an additional Service is made of its template.
// +kubebuilder:validation:Enum=patch;replace
type ServiceUpdateStrategy string

// The update strategies.
const (
	// ServicePatch lays the template over what the default Services have.
	ServicePatch ServiceUpdateStrategy = "patch"
	// ServiceReplace takes nothing but the template, the selector, the port and the operator's labels.
	ServiceReplace ServiceUpdateStrategy = "replace"
)

// ManagedService is one more Service.
type ManagedService struct {
	// Name is added to the Cluster's. It begins with a letter, and is neither rw, ro nor r.
	// +kubebuilder:validation:Pattern=`^[a-z]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="!(self in ['rw', 'ro', 'r'])",message="rw, ro and r are the default Services: choose another name"
	Name string `json:"name"`

	// SelectorType is the role that it leads to.
	SelectorType ServiceSelector `json:"selectorType"`

	// UpdateStrategy is patch, which lays the template over what the default Services have (spec.inheritedMetadata and
	// the template for all), or replace, which takes nothing else than the template. Default: patch.
	// +optional
	UpdateStrategy ServiceUpdateStrategy `json:"updateStrategy,omitempty"`

	// ServiceTemplate is what this Service has besides.
	// +optional
	ServiceTemplate ServiceTemplate `json:"serviceTemplate,omitempty"`
}

// ServiceTemplate is what a user may say about a Service.
type ServiceTemplate struct {
	// Metadata is labels and annotations of the Service. The operator's own win.
	// +optional
	Metadata EmbeddedMetadata `json:"metadata,omitempty"`

	// +optional
	Spec ServiceTemplateSpec `json:"spec,omitempty"`
}

// ServiceTemplateSpec are the fields of a Service that are the user's. They mean what they mean in a Service.
type ServiceTemplateSpec struct {
	// Type of the Service. Default: ClusterIP.
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer;ExternalName
	// +optional
	Type corev1.ServiceType `json:"type,omitempty"`

	// +kubebuilder:validation:Enum=Cluster;Local
	// +optional
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`

	// +kubebuilder:validation:Enum=None;ClientIP
	// +optional
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`

	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`

	// +optional
	LoadBalancerClass *string `json:"loadBalancerClass,omitempty"`

	// +optional
	ExternalName string `json:"externalName,omitempty"`

	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	HealthCheckNodePort int32 `json:"healthCheckNodePort,omitempty"`
}

// ServiceDisabled tells whether a default Service is not to be made.
func (c *Cluster) ServiceDisabled(role ServiceSelector) bool {
	s := c.managedServices()
	for _, d := range s.DisabledDefaultServices {
		if string(d) == string(role) {
			return role != ServiceRW
		}
	}
	return false
}

// AdditionalServices are the Services that the user adds.
func (c *Cluster) AdditionalServices() []ManagedService { return c.managedServices().Additional }

// ServiceTemplate is what the user says about all default Services.
func (c *Cluster) ServiceTemplate() ServiceTemplate {
	if t := c.managedServices().Template; t != nil {
		return *t
	}
	return ServiceTemplate{}
}

func (c *Cluster) managedServices() ManagedServices {
	if m := c.Spec.Managed; m != nil && m.Services != nil {
		return *m.Services
	}
	return ManagedServices{}
}
