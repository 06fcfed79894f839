package objects_test

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
)

func TestTemplateHashIgnoresWhatScalingAndSwitchoverChange(t *testing.T) {
	for name, change := range map[string]func(*api.Cluster){
		"number of instances":   func(c *api.Cluster) { c.Spec.Instances = 1 },
		"current primary":       func(c *api.Cluster) { c.Status.CurrentPrimary, c.Status.TargetPrimary = "c1-2", "c1-2" },
		"generation":            func(c *api.Cluster) { c.Status.CurrentPrimaryGeneration = 7 },
		"instance list":         func(c *api.Cluster) { c.Status.InstanceNames = []string{"c1-1", "c1-9"} },
		"sync replicas":         func(c *api.Cluster) { c.Spec.MinSyncReplicas, c.Spec.MaxSyncReplicas = 1, 2 },
		"inherited metadata":    func(c *api.Cluster) { c.Spec.InheritedMetadata = full().Spec.InheritedMetadata },
		"description":           func(c *api.Cluster) { c.Spec.Description = "x" },
		"size of the volume":    func(c *api.Cluster) { c.Spec.Storage.Size = resource.MustParse("20Gi") },
		"parameters":            func(c *api.Cluster) { c.Spec.MySQL.Parameters = map[string]string{"max_connections": "500"} },
		"failover delay":        func(c *api.Cluster) { c.Spec.FailoverDelay = 30 },
		"defaults applied once": func(c *api.Cluster) { c.Default() },
	} {
		t.Run(name, func(t *testing.T) {
			before := objects.TemplateHash(minimal(), "c1-1", options)
			c := minimal()
			change(c)
			if after := objects.TemplateHash(c, "c1-1", options); after != before {
				t.Errorf("the Pod is outdated by it")
			}
			if pod := objects.Pod(c, "c1-1", options); pod.Annotations[api.AnnotationTemplateHash] != before {
				t.Errorf("the Pod's annotation is %q, not %q", pod.Annotations[api.AnnotationTemplateHash], before)
			}
		})
	}
}

func TestTemplateHashFollowsWhatMatters(t *testing.T) {
	before := objects.TemplateHash(minimal(), "c1-1", options)
	for name, change := range map[string]func(*api.Cluster){
		"image":     func(c *api.Cluster) { c.Spec.ImageName = "mysql:8.4" },
		"resources": func(c *api.Cluster) { c.Spec.Resources = full().Spec.Resources },
		"env":       func(c *api.Cluster) { c.Spec.Env = full().Spec.Env },
		"affinity":  func(c *api.Cluster) { c.Spec.Affinity.PodAntiAffinityType = api.AntiAffinityRequired },
		"stop":      func(c *api.Cluster) { c.Spec.MaxStopDelay = 60 },
		"log level": func(c *api.Cluster) { c.Spec.LogLevel = api.LogLevelDebug },
	} {
		c := minimal()
		change(c)
		if objects.TemplateHash(c, "c1-1", options) == before {
			t.Errorf("a change of %s does not change the hash", name)
		}
	}
	if objects.TemplateHash(minimal(), "c1-1", objects.Options{OperatorImage: "cnmsql/operator:next"}) == before {
		t.Error("a new instance manager does not change the hash")
	}
}

func TestInheritedMetadataNeitherReplacesOursNorEntersSelectors(t *testing.T) {
	c := full()
	roles := map[string]string{"c1-rw": api.RolePrimary, "c1-ro": api.RoleReplica, "c1-inside": api.RolePrimary, "c1-reporting": api.RoleReplica}
	for _, s := range objects.RoleServices(c) {
		want := map[string]string{api.LabelCluster: "c1", api.LabelRoutable: "true", api.LabelRole: roles[s.Name]}
		if !maps.Equal(s.Spec.Selector, want) {
			t.Errorf("%s selects %v, not %v", s.Name, s.Spec.Selector, want)
		}
	}
	pod := objects.Pod(c, "c1-1", options)
	want := map[string]string{"team": "payments", objects.LabelManagedBy: objects.ManagedBy, api.LabelCluster: "c1", api.LabelInstance: "c1-1"}
	if !maps.Equal(pod.Labels, want) {
		t.Errorf("the Pod's labels are %v", pod.Labels)
	}
	if pod.Annotations[api.AnnotationTemplateHash] == "forged" {
		t.Error("an inherited annotation replaced the hash")
	}
	if sa := objects.ServiceAccount(c, "c1-1"); sa.Labels[api.LabelCluster] != "c1" {
		t.Error("the ServiceAccount's template replaced the Cluster's label")
	}
}

func TestServiceAccountTemplateWinsOverInheritedMetadata(t *testing.T) {
	c := full()
	c.Spec.ServiceAccountTemplate = &api.ServiceAccountTemplate{Metadata: api.EmbeddedMetadata{
		Labels:      map[string]string{"team": "identity"},
		Annotations: map[string]string{"owner": "identity@example.com", api.AnnotationSpecHash: "forged"},
	}}
	sa := objects.ServiceAccount(c, "c1-1")
	if sa.Labels["team"] != "identity" || sa.Labels[api.LabelInstance] != "c1-1" {
		t.Errorf("labels %v", sa.Labels)
	}
	if want := map[string]string{"owner": "identity@example.com"}; !maps.Equal(sa.Annotations, want) {
		t.Errorf("annotations %v", sa.Annotations)
	}
	if role := objects.Role(c, "c1-1"); role.Labels["team"] != "payments" {
		t.Errorf("the template reached the Role: %v", role.Labels)
	}
}

func TestPodIsAcceptedUnderTheRestrictedLevel(t *testing.T) {
	pod := objects.Pod(minimal(), "c1-1", options)
	if p := pod.Spec.SecurityContext; !*p.RunAsNonRoot || p.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || *p.RunAsUser == 0 {
		t.Errorf("Pod security context %+v", p)
	}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		s := container.SecurityContext
		if *s.AllowPrivilegeEscalation || *s.Privileged || !*s.RunAsNonRoot || !*s.ReadOnlyRootFilesystem {
			t.Errorf("%s: %+v", container.Name, s)
		}
		if !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
			t.Errorf("%s: capabilities %+v", container.Name, s.Capabilities)
		}
	}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil {
			t.Errorf("volume %s is a path of the host", v.Name)
		}
	}
}

func TestNoSecretIsInEnvironmentOrArguments(t *testing.T) {
	pod := objects.Pod(minimal(), "c1-1", options)
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, e := range container.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				t.Errorf("%s: %s comes from a Secret", container.Name, e.Name)
			}
		}
	}
}

func TestReplacedSecurityContextWithoutAGroupCanStillReadItsCertificates(t *testing.T) {
	c := minimal()
	c.Spec.PodSecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(1001))}
	for _, v := range objects.Pod(c, "c1-1", options).Spec.Volumes {
		if v.Secret != nil && *v.Secret.DefaultMode != 0o444 {
			t.Errorf("%s has mode %o", v.Name, *v.Secret.DefaultMode)
		}
	}
}

func TestInstancesAreThoseThatExistAndThoseToBeMadeNext(t *testing.T) {
	for _, tc := range []struct {
		name   string
		exist  []string
		latest int32
		want   []string
	}{
		{"a new Cluster", nil, 0, []string{"c1-1", "c1-2", "c1-3"}},
		{"one exists", []string{"c1-1"}, 1, []string{"c1-1", "c1-2", "c1-3"}},
		{"ordinals are not used again", []string{"c1-1", "c1-4"}, 5, []string{"c1-1", "c1-4", "c1-6"}},
		{"more than wanted", []string{"c1-1", "c1-2", "c1-3", "c1-4"}, 4, []string{"c1-1", "c1-2", "c1-3", "c1-4"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := minimal()
			c.Status.InstanceNames, c.Status.LatestGeneratedNode = tc.exist, tc.latest
			if got := objects.Instances(c); !slices.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestBuildersDoNotShareMemoryWithTheCluster(t *testing.T) {
	c := full()
	kept := c.DeepCopy()
	for range 2 {
		pod := objects.Pod(c, "c1-1", options)
		pod.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = "x"
		pod.Labels["x"] = "y"
		pod.Spec.NodeSelector["x"] = "y"
		pod.Spec.Containers[0].EnvFrom[0].Prefix = "X_"
		pod.Spec.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("1")
		objects.PVCs(c, "c1-1")[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1")
	}
	if objects.TemplateHash(c, "c1-1", options) != objects.TemplateHash(kept, "c1-1", options) {
		t.Error("building objects changed the Cluster")
	}
}

func TestRemovedIsOnlyWhatWasMadeAndIsNeverNeededAgain(t *testing.T) {
	for _, tc := range []struct {
		name, instance string
		change         func(*api.ClusterStatus)
		want           bool
	}{
		{"taken out", "c1-2", func(*api.ClusterStatus) {}, true},
		{"the last one taken out", "c1-4", func(*api.ClusterStatus) {}, true},
		{"a member", "c1-3", func(*api.ClusterStatus) {}, false},
		{"still to be made", "c1-5", func(*api.ClusterStatus) {}, false},
		{"of another Cluster", "c2-2", func(*api.ClusterStatus) {}, false},
		{"no instance", "", func(*api.ClusterStatus) {}, false},
		{"the primary", "c1-2", func(s *api.ClusterStatus) { s.CurrentPrimary = "c1-2" }, false},
		{"gives the role up", "c1-2", func(s *api.ClusterStatus) { s.PrimaryTransition = &api.PrimaryTransition{From: "c1-2", To: "c1-1"} }, false},
		{"is to be promoted", "c1-2", func(s *api.ClusterStatus) { s.PrimaryTransition = &api.PrimaryTransition{From: "c1-1", To: "c1-2"} }, false},
		{"others change the role", "c1-2", func(s *api.ClusterStatus) { s.PrimaryTransition = &api.PrimaryTransition{From: "c1-1", To: "c1-3"} }, true},
		{"the instances are lost", "c1-2", func(s *api.ClusterStatus) { s.InstanceNames = nil }, false},
		{"the primary is lost", "c1-2", func(s *api.ClusterStatus) { s.CurrentPrimary = "" }, false},
		{"the last number is lost, a later one is there", "c1-2", func(s *api.ClusterStatus) { s.LatestGeneratedNode = 0 }, true},
		{"the last number is lost", "c1-4", func(s *api.ClusterStatus) { s.LatestGeneratedNode = 0 }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := minimal()
			c.Status = api.ClusterStatus{InstanceNames: []string{"c1-1", "c1-3"}, LatestGeneratedNode: 4, CurrentPrimary: "c1-1"}
			tc.change(&c.Status)
			if got := objects.Removed(c, tc.instance); got != tc.want {
				t.Errorf("removed: %v", got)
			}
			if tc.want && slices.Contains(objects.Instances(c), tc.instance) {
				t.Error("it is made and removed at once")
			}
		})
	}
}

func TestABudgetLetsOneInstanceAtATimeBeEvicted(t *testing.T) {
	for members, want := range map[int]int{0: -1, 1: -1, 2: 1, 3: 2, 5: 4} {
		c := minimal()
		c.Status.InstanceNames = nil
		for n := range members {
			c.Status.InstanceNames = append(c.Status.InstanceNames, c.InstanceName(int32(n+1)))
		}
		got := -1
		if pdb := objects.PDB(c); pdb != nil {
			got = pdb.Spec.MinAvailable.IntValue()
		}
		if got != want {
			t.Errorf("%d instances: %d must stay, want %d", members, got, want)
		}
		c.Spec.EnablePDB = new(false)
		if objects.PDB(c) != nil {
			t.Errorf("%d instances: it is switched off and made", members)
		}
	}
}
