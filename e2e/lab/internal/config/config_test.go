package config

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNodeNamesAreReadBack(t *testing.T) {
	for n := Node(1); n <= MaxNodes; n++ {
		got, err := ParseNode(n.Name())
		if err != nil || got != n {
			t.Errorf("ParseNode(%q) = %v, %v", n.Name(), got, err)
		}
	}
}

func TestOtherNamesAreNoNodes(t *testing.T) {
	for _, name := range []string{"", "n", "n0", "n10", "n-1", "2", "cp", "n1x", "../n1"} {
		if n, err := ParseNode(name); err == nil {
			t.Errorf("ParseNode(%q) = %v, want an error", name, n)
		}
	}
}

func TestNodesShareNoAddress(t *testing.T) {
	seen := map[string]bool{ControlPlaneIP: true}
	for n := Node(1); n <= MaxNodes; n++ {
		for _, a := range []string{n.IP(), n.PodCIDR(), n.Veth(), n.Cgroup()} {
			if seen[a] {
				t.Errorf("%s is used twice", a)
			}
			seen[a] = true
		}
	}
}

func TestFilesNameTheNodeTheyAreFor(t *testing.T) {
	fs, err := Files(Places{State: "/s", Bin: "/b"}, 2)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"containerd.toml": "conf_dir = '/s/n2/cni'",
		"10-lab.conflist": `"subnet": "10.244.2.0/24"`,
		"kubelet.yaml":    "cgroupRoot: /cnmsql-lab/n2\n",
		"proxy.yaml":      "hostnameOverride: n2\n",
		"resolv.conf":     "search lab.invalid\n",
	} {
		if !strings.Contains(string(fs[name]), want) {
			t.Errorf("%s does not hold %q:\n%s", name, want, fs[name])
		}
	}
	if !json.Valid(fs["10-lab.conflist"]) {
		t.Error("the network configuration is not JSON")
	}
}

func TestTheKubeletWaitsAsLongAsAskedOrAsKubernetesDoes(t *testing.T) {
	for delay, want := range map[time.Duration]string{0: "5m0s", 10 * time.Second: "10s"} {
		fs, err := Files(Places{State: "/s", Bin: "/b", RestartDelay: delay}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(fs["kubelet.yaml"]), "{maxContainerRestartPeriod: "+want+"}\n") {
			t.Errorf("%v: no %s in\n%s", delay, want, fs["kubelet.yaml"])
		}
	}
}

func TestTheProxyChangesRulesAsOftenAsAskedOrAsKubernetesDoes(t *testing.T) {
	for sync, want := range map[time.Duration]string{0: "1s", 100 * time.Millisecond: "100ms"} {
		fs, err := Files(Places{State: "/s", Bin: "/b", ProxySync: sync}, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(fs["proxy.yaml"]), "nftables: {minSyncPeriod: "+want+"}\n") {
			t.Errorf("%v: no %s in\n%s", sync, want, fs["proxy.yaml"])
		}
	}
}

func TestACutDropsBothDirectionsAndLeavesTheRest(t *testing.T) {
	for from, want := range map[Side][]string{
		FromAPI:   {"iifname eth0 ip saddr 172.30.0.1 tcp sport 6443 drop", "oifname eth0 ip daddr 172.30.0.1 tcp dport 6443 drop"},
		FromPeers: {"iifname eth0 ip saddr { 10.244.0.0/16, 172.30.0.0/24 } ip saddr != 172.30.0.1 drop", "oifname eth0 ip daddr { 10.244.0.0/16, 172.30.0.0/24 } ip daddr != 172.30.0.1 drop"},
	} {
		rules, err := CutRules(from)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(rules, w) {
				t.Errorf("%s: no %q in %s", from, w, rules)
			}
		}
	}
	if rules, err := CutRules("moon"); err == nil {
		t.Errorf("the moon is cut off by %s", rules)
	}
}

func TestAPlaceholderWithoutAValueIsAnError(t *testing.T) {
	_, err := expand("a: @KNOWN@ b: @OTHER@", map[string]string{"KNOWN": "x"})
	if err == nil || !strings.Contains(err.Error(), "@OTHER@") {
		t.Errorf("error %v does not name @OTHER@", err)
	}
}

func TestLookupNamesAcceptShortAndFullNames(t *testing.T) {
	for host, want := range map[string][]string{
		"db":                             {"db.default.svc.cluster.local."},
		"db.demo":                        {"db.demo.svc.cluster.local.", "db.demo."},
		"db-0.db.demo":                   {"db-0.db.demo.svc.cluster.local.", "db-0.db.demo."},
		"db.demo.svc":                    {"db.demo.svc.cluster.local."},
		"db.demo.svc.cluster.local":      {"db.demo.svc.cluster.local."},
		"db.demo.svc.cluster.local.":     {"db.demo.svc.cluster.local."},
		"db-0.db.demo.svc.cluster.local": {"db-0.db.demo.svc.cluster.local."},
	} {
		if got := LookupNames(host); !slices.Equal(got, want) {
			t.Errorf("LookupNames(%q) = %q, want %q", host, got, want)
		}
	}
}
