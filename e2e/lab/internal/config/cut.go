package config

import (
	"fmt"
	"strings"
)

// Side is what a node may be cut off from while its cable stays plugged in.
type Side string

// Sides. FromAPI is the apiserver alone, as the node and its pods ask it; what the apiserver asks of the node (logs,
// exec, webhooks) still arrives. FromPeers is all other nodes and their pods; the control plane stays in reach.
const (
	FromAPI   Side = "api"
	FromPeers Side = "peers"
)

// CutTable is the nftables table of a node that holds its cuts.
const CutTable = "inet lab_cut"

// CutRules are nftables commands that drop, in a node, what comes from a side and what goes there. They see
// packets as they are on the cable, before and after any address translation, so connections that are open
// stand still like new ones.
func CutRules(from Side) (string, error) {
	var in, out string
	switch from {
	case FromAPI:
		in = "ip saddr " + ControlPlaneIP + " tcp sport 6443"
		out = "ip daddr " + ControlPlaneIP + " tcp dport 6443"
	case FromPeers:
		all := "{ " + PodCIDR + ", " + hostNet + ".0/24 }"
		in = "ip saddr " + all + " ip saddr != " + ControlPlaneIP
		out = "ip daddr " + all + " ip daddr != " + ControlPlaneIP
	default:
		return "", fmt.Errorf("a node is cut off from %s or %s, not from %q", FromAPI, FromPeers, from)
	}
	return strings.Join([]string{
		"add table " + CutTable,
		"add chain " + CutTable + " in { type filter hook prerouting priority -400; }",
		"add chain " + CutTable + " out { type filter hook postrouting priority 400; }",
		"add rule " + CutTable + " in iifname eth0 " + in + " drop",
		"add rule " + CutTable + " out oifname eth0 " + out + " drop",
	}, "; "), nil
}

// HealRules undo all cuts of a node, also when there are none.
func HealRules() string { return "add table " + CutTable + "; delete table " + CutTable }
