package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "cnmsql.co/operator/api/v1alpha1"
)

// Options are what objects need to know beside the Cluster.
type Options struct {
	// OperatorImage is the image with the instance manager.
	OperatorImage string
}

// Names of the containers of a Pod.
const (
	ContainerMySQL     = "mysql"
	ContainerBootstrap = "bootstrap-controller"
)

// Paths in the server's container.
const (
	PathController     = "/controller"
	PathData           = "/var/lib/mysql"
	PathBinlog         = "/var/lib/mysql-binlog"
	PathRun            = "/run/cnmsql"
	PathTmp            = "/tmp"
	PathServerTLS      = "/etc/cnmsql/server-tls"
	PathReplicationTLS = "/etc/cnmsql/replication-tls"
	PathCredentials    = "/etc/cnmsql/credentials"
)

// serverID is the user and group of the server in the published images.
const serverID = int64(999)

// Pod is the Pod of one instance. It carries no role: that is a label put on it later.
func Pod(c *api.Cluster, instance string, o Options) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: instanceMeta(c, instance, instance)}
	spec := podSpec(c, instance, o)
	spec.DeepCopyInto(&pod.Spec)
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[api.AnnotationTemplateHash] = hash(&pod.Spec)
	return pod
}

// TemplateHash is what the instance's Pod would carry as AnnotationTemplateHash if it were made now.
func TemplateHash(c *api.Cluster, instance string, o Options) string {
	spec := podSpec(c, instance, o)
	return hash(&spec)
}

func hash(spec *corev1.PodSpec) string {
	raw, err := json.Marshal(spec)
	if err != nil {
		// A PodSpec has no value that cannot be encoded; an empty hash makes the Pod outdated, not lost.
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:8])
}

func podSpec(c *api.Cluster, instance string, o Options) corev1.PodSpec {
	s := &c.Spec
	return corev1.PodSpec{
		Hostname:                      instance,
		ServiceAccountName:            api.InstanceServiceAccountName(instance),
		AutomountServiceAccountToken:  new(true),
		EnableServiceLinks:            new(false),
		DNSConfig:                     patience(),
		RestartPolicy:                 corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: new(int64(s.MaxStopDelay)),
		SecurityContext:               podSecurityContext(c),
		ImagePullSecrets:              s.ImagePullSecrets,
		PriorityClassName:             s.PriorityClassName,
		SchedulerName:                 s.SchedulerName,
		NodeSelector:                  s.Affinity.NodeSelector,
		Tolerations:                   s.Affinity.Tolerations,
		Affinity:                      affinity(c),
		TopologySpreadConstraints:     s.TopologySpreadConstraints,
		InitContainers:                []corev1.Container{bootstrapContainer(c, o)},
		Containers:                    []corev1.Container{serverContainer(c, instance)},
		Volumes:                       volumes(c, instance),
	}
}

// patience with the cluster's DNS is short. When a node dies, one of the servers behind the DNS's address may have died with
// it, and each question that it would have got is lost. With the 5 s that a resolver waits by itself, and three questions for a
// source's name, a replica is away for up to half a minute when it matters most.
func patience() *corev1.PodDNSConfig {
	return &corev1.PodDNSConfig{Options: []corev1.PodDNSConfigOption{
		{Name: "timeout", Value: new("1")}, {Name: "attempts", Value: new("4")},
	}}
}

// bootstrapContainer copies the instance manager into the Pod. It has the server's resources, which costs
// nothing (it ends before the server starts) and keeps the Pod's quality of service.
func bootstrapContainer(c *api.Cluster, o Options) corev1.Container {
	return corev1.Container{
		Name:                     ContainerBootstrap,
		Image:                    o.OperatorImage,
		ImagePullPolicy:          corev1.PullIfNotPresent,
		Command:                  []string{"/instance", "install", PathController + "/instance"},
		Resources:                c.Spec.Resources,
		SecurityContext:          securityContext(c),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts:             []corev1.VolumeMount{{Name: volumeController, MountPath: PathController}},
	}
}

func serverContainer(c *api.Cluster, instance string) corev1.Container {
	return corev1.Container{
		Name:                     ContainerMySQL,
		Image:                    c.Spec.ImageName,
		ImagePullPolicy:          c.Spec.ImagePullPolicy,
		Command:                  []string{PathController + "/instance", "run"},
		Env:                      env(c, instance),
		EnvFrom:                  c.Spec.EnvFrom,
		Resources:                c.Spec.Resources,
		SecurityContext:          securityContext(c),
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Ports: []corev1.ContainerPort{
			port("mysql", api.PortMySQL),
			port("control", api.PortControl),
			port("probes", api.PortProbes),
			port("metrics", api.PortMetrics),
		},
		StartupProbe:   probe("/startupz", 1, 1, c.Spec.MaxStartDelay),
		LivenessProbe:  probe("/livez", 5, 3, 3),
		ReadinessProbe: probe("/readyz", 1, 3, 2),
		VolumeMounts:   mounts(c),
	}
}

func port(name string, number int32) corev1.ContainerPort {
	return corev1.ContainerPort{Name: name, ContainerPort: number, Protocol: corev1.ProtocolTCP}
}

// probe asks the manager each period seconds; failures in a row make it fail.
func probe(path string, period, timeout, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: path, Port: intstr.FromString("probes"), Scheme: corev1.URISchemeHTTP,
		}},
		PeriodSeconds:    period,
		TimeoutSeconds:   timeout,
		SuccessThreshold: 1,
		FailureThreshold: failures,
	}
}

// env is the instance manager's configuration, then the user's variables.
func env(c *api.Cluster, instance string) []corev1.EnvVar {
	vars := []corev1.EnvVar{
		{Name: "CNMSQL_CLUSTER", Value: c.Name},
		{Name: "CNMSQL_CLUSTER_UID", Value: string(c.UID)},
		{Name: "CNMSQL_NAMESPACE", Value: c.Namespace},
		{Name: "CNMSQL_INSTANCE", Value: instance},
		{Name: "CNMSQL_LOG_LEVEL", Value: string(c.Spec.LogLevel)},
		// What the kubelet gives this very Pod, whatever the Cluster says later.
		{Name: "CNMSQL_GRACE_SECONDS", Value: strconv.Itoa(int(c.Spec.MaxStopDelay))},
		downward("CNMSQL_POD_UID", "metadata.uid"),
	}
	if _, limited := c.Spec.Resources.Limits[corev1.ResourceMemory]; limited {
		vars = append(vars, corev1.EnvVar{Name: "CNMSQL_MEMORY_LIMIT", ValueFrom: &corev1.EnvVarSource{
			ResourceFieldRef: &corev1.ResourceFieldSelector{ContainerName: ContainerMySQL, Resource: "limits.memory"},
		}})
	}
	return append(vars, c.Spec.Env...)
}

func downward(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}}
}
