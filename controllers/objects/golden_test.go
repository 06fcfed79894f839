package objects_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
)

var update = flag.Bool("update", false, "write the golden files")

var options = objects.Options{OperatorImage: "cnmsql/operator:dev"}

// minimal is a Cluster with nothing but what must be given.
func minimal() *api.Cluster {
	c := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1", UID: "uid-of-c1"}}
	c.Spec.Instances = 3
	c.Spec.Storage.Size = resource.MustParse("10Gi")
	c.Default()
	c.Status.InstanceNames = []string{"c1-1", "c1-2", "c1-3"}
	return c
}

// full is a Cluster that uses every field which reaches an object.
func full() *api.Cluster {
	c := minimal()
	s := &c.Spec
	s.InheritedMetadata = &api.EmbeddedMetadata{
		Labels: map[string]string{
			"team": "payments", api.LabelCluster: "stolen", api.LabelRole: api.RolePrimary,
			api.LabelRoutable: "true", objects.LabelManagedBy: "somebody",
		},
		Annotations: map[string]string{"owner": "payments@example.com", api.AnnotationTemplateHash: "forged"},
	}
	s.ImageName, s.ImagePullPolicy = "percona/percona-server:8.4", corev1.PullAlways
	s.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
	s.Storage.StorageClass = new("fast")
	s.Storage.PVCTemplate = &corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}, StorageClassName: new("loses"),
	}
	s.BinlogStorage = &api.StorageConfiguration{Size: resource.MustParse("5Gi")}
	s.RootPasswordSecret = &corev1.LocalObjectReference{Name: "my-root"}
	s.Bootstrap.InitDB.Secret = &corev1.LocalObjectReference{Name: "my-app"}
	s.Certificates = &api.CertificatesConfiguration{ServerAltDNSNames: []string{"db.example.com", "localhost"}}
	s.Resources = corev1.ResourceRequirements{
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
		Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi"), corev1.ResourceCPU: resource.MustParse("500m")},
	}
	s.Affinity = api.AffinityConfiguration{
		EnablePodAntiAffinity: new(true), TopologyKey: "topology.kubernetes.io/zone", PodAntiAffinityType: api.AntiAffinityRequired,
		NodeSelector: map[string]string{"disk": "nvme"},
		Tolerations:  []corev1.Toleration{{Key: "db", Operator: corev1.TolerationOpExists}},
		AdditionalPodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "batch"}}, TopologyKey: "kubernetes.io/hostname",
		}}},
	}
	s.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.ScheduleAnyway}}
	s.PriorityClassName, s.SchedulerName = "databases", "binpack"
	s.Env = []corev1.EnvVar{{Name: "TZ", Value: "UTC"}}
	s.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "extra"}}}}
	s.ServiceAccountTemplate = &api.ServiceAccountTemplate{Metadata: api.EmbeddedMetadata{
		Annotations: map[string]string{"eks.amazonaws.com/role-arn": "arn:aws:iam::1:role/db"}, Labels: map[string]string{api.LabelCluster: "stolen"},
	}}
	s.Managed = &api.ManagedConfiguration{Services: &api.ManagedServices{
		DisabledDefaultServices: []api.DefaultService{"r"},
		Template: &api.ServiceTemplate{
			Metadata: api.EmbeddedMetadata{Labels: map[string]string{"app.kubernetes.io/part-of": "my-app", api.LabelRole: "stolen"}},
			Spec:     api.ServiceTemplateSpec{Type: corev1.ServiceTypeLoadBalancer, LoadBalancerSourceRanges: []string{"10.0.0.0/8"}},
		},
		Additional: []api.ManagedService{
			{Name: "inside", SelectorType: api.ServiceRW, UpdateStrategy: api.ServicePatch, ServiceTemplate: api.ServiceTemplate{
				Metadata: api.EmbeddedMetadata{Annotations: map[string]string{"example.com/internal": "true"}},
				Spec:     api.ServiceTemplateSpec{LoadBalancerSourceRanges: []string{"192.168.0.0/16"}},
			}},
			{Name: "reporting", SelectorType: api.ServiceRO, UpdateStrategy: api.ServiceReplace, ServiceTemplate: api.ServiceTemplate{
				Metadata: api.EmbeddedMetadata{Labels: map[string]string{"pool": "reporting"}},
			}},
		},
	}}
	s.Replication.MaxReadyLag = &metav1.Duration{Duration: 30 * time.Second}
	s.MaxStartDelay, s.MaxStopDelay = 600, 120
	s.LogLevel = api.LogLevelDebug
	return c
}

func TestObjectsAreAsTheGoldenFilesSay(t *testing.T) {
	for name, c := range map[string]*api.Cluster{"minimal": minimal(), "full": full()} {
		groups := map[string][]any{
			"pod":      {objects.Pod(c, "c1-2", options)},
			"pvc":      anys(objects.PVCs(c, "c1-2")),
			"services": append(anys(objects.RoleServices(c)), objects.InstanceService(c, "c1-2")),
			"rbac":     {objects.ServiceAccount(c, "c1-2"), objects.Role(c, "c1-2"), objects.RoleBinding(c, "c1-2")},
			"pdb":      {objects.PDB(c)},
			"lease":    {objects.Lease(c, "", time.Unix(1700000000, 0).UTC()), objects.Lease(c, "c1-1/pod-uid", time.Unix(1700000000, 0).UTC())},
			"certificates": append(anys(objects.Issuers(c)),
				anys(objects.Certificates(c, []string{"c1-1"}))...),
		}
		for group, list := range groups {
			t.Run(name+"/"+group, func(t *testing.T) { golden(t, name+"_"+group+".yaml", list) })
		}
	}
}

func anys[T any](list []T) []any {
	out := make([]any, 0, len(list))
	for _, o := range list {
		out = append(out, o)
	}
	return out
}

func golden(t *testing.T, file string, list []any) {
	t.Helper()
	var got bytes.Buffer
	for _, o := range list {
		raw, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n")
		got.Write(raw)
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it):\n%s", path, diff)
	}
}
