package plan

import (
	"maps"
	"slices"
	"time"
)

// Kind is a sort of fault.
type Kind string

// Kinds of faults, each with what happens.
const (
	KillServer         Kind = "kill-server"          // kill -9 of mysqld
	KillManager        Kind = "kill-manager"         // kill -9 of the instance manager, with which its container ends
	KillContainer      Kind = "kill-container"       // containerd kills every process of the container
	HangServer         Kind = "hang-server"          // SIGSTOP of mysqld, SIGCONT later
	HangManager        Kind = "hang-manager"         // the same of the manager alone
	HangWatchdog       Kind = "hang-watchdog"        // the same of the watchdog alone
	FreezeContainer    Kind = "freeze-container"     // all of the container at once, by its control group
	DeletePod          Kind = "delete-pod"           // with the Pod's own grace period
	DeletePodNow       Kind = "delete-pod-now"       // with none
	CutAPI             Kind = "cut-api"              // the node and its Pods cannot reach the API server
	CutPeers           Kind = "cut-peers"            // the node and its Pods reach no other node
	CutAll             Kind = "cut-all"              // the node's cable is unplugged
	KillNode           Kind = "kill-node"            // everything on the node ends; the node is started later
	CordonNode         Kind = "cordon-node"          // nothing new may be placed on the node
	DiskFull           Kind = "disk-full"            // the node's volumes have no room left
	APIHangs           Kind = "api-hangs"            // SIGSTOP of the API server
	APIAway            Kind = "api-away"             // the API server refuses every connection
	KillOperator       Kind = "kill-operator"        // kill -9 of the operator, again and again
	HangOperator       Kind = "hang-operator"        // SIGSTOP of the operator
	Switchover         Kind = "switchover"           // a planned change of primary
	SwitchoverWithdraw Kind = "switchover-withdrawn" // one that is taken back soon after
	FenceInstance      Kind = "fence-instance"       // a person takes the instance out of service, and back later
)

// about is what the plan has to know of a kind.
type about struct {
	targets []Target
	weights []int
	// shortest and longest are how long it lasts; both 0 for what is over at once.
	shortest, longest time.Duration
	// area: two kinds in the same area are not done to the same target in one round.
	area string
	// idle kinds matter only while the primary changes.
	idle bool
}

var (
	instances    = []Target{Primary, First, Second}
	mostlyOfThem = []int{3, 1, 1} // the primary is more worth a fault
	replicas     = []Target{First, Second}
	anyReplica   = []int{1, 1}
	nobody       = []Target{Everybody}
)

func lasting(area string, shortest, longest time.Duration) about {
	return about{targets: instances, weights: mostlyOfThem, shortest: shortest * time.Second, longest: longest * time.Second, area: area}
}

func control(area string, shortest, longest time.Duration, idle bool) about {
	return about{targets: nobody, weights: []int{1}, shortest: shortest * time.Second, longest: longest * time.Second, area: area, idle: idle}
}

// Kinds are all of them.
var Kinds = map[Kind]about{
	KillServer:         lasting("", 0, 0),
	KillManager:        lasting("container", 0, 0),
	KillContainer:      lasting("container", 0, 0),
	HangServer:         lasting("processes", 2, 45),
	HangManager:        lasting("processes", 2, 45),
	HangWatchdog:       lasting("processes", 2, 30),
	FreezeContainer:    lasting("processes", 2, 45),
	DeletePod:          lasting("pod", 0, 0),
	DeletePodNow:       lasting("pod", 0, 0),
	CutAPI:             lasting("node", 4, 50),
	CutPeers:           lasting("node", 4, 50),
	CutAll:             lasting("node", 4, 50),
	KillNode:           lasting("node", 2, 45),
	CordonNode:         lasting("", 3, 25),
	DiskFull:           lasting("", 5, 40),
	FenceInstance:      lasting("fence", 3, 40),
	APIHangs:           control("api", 3, 60, false),
	APIAway:            control("api", 3, 60, false),
	KillOperator:       control("operator", 5, 25, true),
	HangOperator:       control("operator", 3, 25, true),
	Switchover:         {targets: replicas, weights: anyReplica, area: "switchover"},
	SwitchoverWithdraw: {targets: replicas, weights: anyReplica, shortest: 100 * time.Millisecond, longest: 4 * time.Second, area: "switchover"},
}

// All are the names of all kinds.
func All() []Kind { return slices.Sorted(maps.Keys(Kinds)) }
