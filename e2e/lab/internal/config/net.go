package config

import (
	"fmt"
	"strconv"
	"strings"
)

// Addresses inside the lab's own network namespaces. None of them can be
// reached from, or collide with, the machine's network.
const (
	// ControlPlaneIP is the bridge address of the root, where the apiserver listens.
	ControlPlaneIP = hostNet + ".1"
	// APIServer is the apiserver's address inside the lab.
	APIServer = ControlPlaneIP + ":6443"
	// ServiceCIDR is the range of Service addresses.
	ServiceCIDR = serviceNet + ".0/16"
	// APIServiceIP is the address of the Service default/kubernetes.
	APIServiceIP = serviceNet + ".1"
	// DNSIP is the address of the Service kube-system/kube-dns.
	DNSIP = serviceNet + ".10"
	// PodCIDR holds the pod networks of all nodes.
	PodCIDR = "10.244.0.0/16"
	// ClusterDomain is the DNS domain of Services.
	ClusterDomain = "cluster.local"

	hostNet    = "172.30.0"
	serviceNet = "10.96.0"
)

// MaxNodes is how many nodes a lab may have.
const MaxNodes = 9

// Cgroup is the cgroup, relative to each hierarchy's root, that holds the lab.
const Cgroup = "cnmsql-lab"

// Node is a node's number, from 1 to MaxNodes.
type Node int

// ParseNode reads a name such as n2.
func ParseNode(name string) (Node, error) {
	digits, ok := strings.CutPrefix(name, "n")
	i, err := strconv.Atoi(digits)
	if !ok || err != nil || i < 1 || i > MaxNodes {
		return 0, fmt.Errorf("%q is no node: they are called n1 to n%d", name, MaxNodes)
	}
	return Node(i), nil
}

// Name is the node's name in Kubernetes and its host name.
func (n Node) Name() string { return fmt.Sprintf("n%d", int(n)) }

// IP is the node's address on the lab's bridge.
func (n Node) IP() string { return fmt.Sprintf("%s.%d", hostNet, 10+int(n)) }

// PodCIDR is the range of the node's pods.
func (n Node) PodCIDR() string { return fmt.Sprintf("10.244.%d.0/24", int(n)) }

// Veth is the root's end of the node's network cable.
func (n Node) Veth() string { return "v" + n.Name() }

// Cgroup is the parent of the node's pods in each cgroup hierarchy.
func (n Node) Cgroup() string { return Cgroup + "/" + n.Name() }

// LookupNames are the rooted DNS names to ask for, in order, when somebody
// outside the cluster names a Service or a pod: "db.default", "db.default.svc"
// and the full name all mean the same.
func LookupNames(host string) []string {
	host = strings.TrimSuffix(host, ".")
	switch {
	case strings.HasSuffix(host, "."+ClusterDomain):
		return []string{host + "."}
	case strings.HasSuffix(host, ".svc"):
		return []string{host + "." + ClusterDomain + "."}
	case strings.Contains(host, "."):
		return []string{host + ".svc." + ClusterDomain + ".", host + "."}
	default:
		return []string{host + ".default.svc." + ClusterDomain + "."}
	}
}
