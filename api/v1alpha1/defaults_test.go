package v1alpha1_test

import (
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	api "cnmsql.co/operator/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

func minimal() *api.Cluster {
	c := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1"}}
	c.Spec.Storage.Size = resource.MustParse("10Gi")
	return c
}

// drawn is a Cluster in which any field that has a default may be set, to whatever value.
func drawn(t *rapid.T) *api.Cluster {
	c := minimal()
	s := &c.Spec
	text, number, long, yes := rapid.SampledFrom([]string{"", "a", "b"}), rapid.Int32Range(-1, 100), rapid.Int64Range(-1, 10000), rapid.Bool()
	s.Flavor, s.ImageName = api.Flavor(text.Draw(t, "flavor")), text.Draw(t, "image")
	s.ImagePullPolicy, s.LogLevel = corev1.PullPolicy(text.Draw(t, "pull")), api.LogLevel(text.Draw(t, "log"))
	s.Instances, s.MinSyncReplicas, s.MaxSyncReplicas = number.Draw(t, "n"), number.Draw(t, "min"), number.Draw(t, "max")
	s.MySQL.BinlogFormat, s.Replication.Mode = text.Draw(t, "format"), api.ReplicationMode(text.Draw(t, "mode"))
	if yes.Draw(t, "semi-sync") {
		s.MySQL.SemiSync = &api.SemiSyncConfiguration{Enabled: yes.Draw(t, "enabled"), TimeoutMillis: long.Draw(t, "timeout")}
	}
	if yes.Draw(t, "bootstrap") {
		s.Bootstrap = &api.BootstrapConfiguration{}
		if yes.Draw(t, "initdb") {
			s.Bootstrap.InitDB = &api.InitDBConfiguration{Database: text.Draw(t, "database"), Owner: text.Draw(t, "owner")}
		}
	}
	if yes.Draw(t, "anti-affinity") {
		s.Affinity.EnablePodAntiAffinity = new(yes.Draw(t, "enabled"))
	}
	s.Affinity.TopologyKey, s.Affinity.PodAntiAffinityType = text.Draw(t, "key"), text.Draw(t, "kind")
	s.MaxStartDelay, s.MaxStopDelay, s.MaxSwitchoverDelay = number.Draw(t, "start"), number.Draw(t, "stop"), number.Draw(t, "switchover")
	if yes.Draw(t, "smart") {
		s.SmartShutdownTimeout = new(number.Draw(t, "smart shutdown"))
	}
	return c
}

func TestDefaultsAppliedTwiceChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		once := drawn(t)
		once.Default()
		twice := once.DeepCopy()
		twice.Default()
		if !equality.Semantic.DeepEqual(once, twice) {
			t.Fatalf("the second time changed it:\n%s", cmp.Diff(once, twice))
		}
	})
}

func TestDefaultsLeaveWhatIsSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := drawn(t)
		after := before.DeepCopy()
		after.Default()
		kept(t, "imageName", before.Spec.ImageName, after.Spec.ImageName)
		kept(t, "instances", before.Spec.Instances, after.Spec.Instances)
		kept(t, "maxSyncReplicas", before.Spec.MaxSyncReplicas, after.Spec.MaxSyncReplicas)
		kept(t, "binlogFormat", before.Spec.MySQL.BinlogFormat, after.Spec.MySQL.BinlogFormat)
		kept(t, "maxStopDelay", before.Spec.MaxStopDelay, after.Spec.MaxStopDelay)
		kept(t, "topologyKey", before.Spec.Affinity.TopologyKey, after.Spec.Affinity.TopologyKey)
		if p := before.Spec.SmartShutdownTimeout; p != nil && *after.Spec.SmartShutdownTimeout != *p {
			t.Fatalf("smartShutdownTimeout became %d, not %d", *after.Spec.SmartShutdownTimeout, *p)
		}
		if p := before.Spec.Affinity.EnablePodAntiAffinity; p != nil && *after.Spec.Affinity.EnablePodAntiAffinity != *p {
			t.Fatal("enablePodAntiAffinity was changed")
		}
	})
}

func kept[T comparable](t *rapid.T, field string, before, after T) {
	t.Helper()
	var zero T
	if before != zero && after != before || after == zero && before == zero && field != "maxSyncReplicas" {
		t.Fatalf("%s was %v and became %v", field, before, after)
	}
}

// What a stored Cluster means may not change with the version of the operator: a changed default is a change of
// running servers that nobody asked for.
func TestDefaultsOfAStoredClusterStayAsTheyAre(t *testing.T) {
	c := minimal()
	c.Default()
	got, err := yaml.Marshal(c.Spec)
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/defaults.yaml"
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it):\n%s", file, diff)
	}
}
