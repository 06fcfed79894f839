package manager

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/protocol"
)

func TestASpecificationThatNoServerStartsWithIsToldWhileTheServerRuns(t *testing.T) {
	cluster := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "ns", ResourceVersion: "1"}, Spec: api.ClusterSpec{Instances: 3}}
	cluster.Default()
	server, err := flavor.Detect("8.4.3")
	if err != nil {
		t.Fatal(err)
	}
	c := &configurer{
		Config: Config{Instance: "c-1", Paths: Paths{
			Data: "/data", Binlog: "/none", Run: "/run", Tmp: "/tmp", ServerTLS: "/tls", Replication: "/replication", Credentials: "/credentials",
		}},
		cluster: func() *api.Cluster { return cluster }, server: &server,
	}
	_, wanted, refused := c.hashes()
	if wanted == "" || wanted == protocol.ConfigInvalid || refused != "" {
		t.Fatalf("a valid one: %q, refused: %s", wanted, refused)
	}
	c.started(wanted)
	change := func(version string, parameters map[string]string) {
		cluster = cluster.DeepCopy()
		cluster.ResourceVersion, cluster.Spec.MySQL.Parameters = version, parameters
	}
	change("2", map[string]string{"expire_logs_days": "7"})
	running, invalid, refused := c.hashes()
	if running != wanted || invalid != protocol.ConfigInvalid || !strings.Contains(refused, "expire_logs_days") {
		t.Errorf("running %q, wanted %q, refused: %s", running, invalid, refused)
	}
	change("3", nil)
	if running, again, refused := c.hashes(); running != again || refused != "" {
		t.Errorf("mended: running %q, wanted %q, refused: %s", running, again, refused)
	}
}
