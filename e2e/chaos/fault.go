package main

import (
	"context"
	"fmt"
	"time"

	"cnmsql.co/operator/e2e/chaos/plan"
	"cnmsql.co/operator/e2e/framework"
)

// healWithin is how long a repair may take that needs an API server which others may be disturbing.
const healWithin = 3 * time.Minute

// fault is something that can go wrong. Both say in a few words what they did. heal is called once for each begin,
// also for one that failed: half of it may have been done.
type fault interface {
	begin(ctx context.Context) (string, error)
	heal(ctx context.Context) (string, error)
}

// make finds the fault that the plan means, among the instances as they were when the round began.
func (s *scene) make(f plan.Fault) fault {
	name := s.instance(f.Target)
	node := s.nodes[name]
	lab := s.r.e.Lab
	c := framework.Container{Node: node, Namespace: s.r.key.Namespace, Name: "mysql", Pod: name}
	switch f.Kind {
	case plan.KillServer:
		return kill{lab, c, framework.Server}
	case plan.KillManager:
		return kill{lab, c, framework.First}
	case plan.KillContainer:
		return killContainer{lab, c}
	case plan.HangServer:
		return hang{lab, c, framework.Server}
	case plan.HangManager:
		return hang{lab, c, framework.First}
	case plan.HangWatchdog:
		return hang{lab, c, framework.Watchdog}
	case plan.FreezeContainer:
		return freeze{lab, c}
	case plan.DeletePod:
		return deletePod{s.r.e, c, nil}
	case plan.DeletePodNow:
		return deletePod{s.r.e, c, new(int64(0))}
	case plan.CutAPI:
		return cut{lab, node, "api"}
	case plan.CutPeers:
		return cut{lab, node, "peers"}
	case plan.CutAll:
		return cut{lab, node, ""}
	case plan.KillNode:
		return killNode{lab, node}
	case plan.CordonNode:
		return cordon{s.r.e, node}
	case plan.DiskFull:
		return fillDisk{lab, node, s.r.limitedDisks}
	case plan.APIHangs:
		return hangAPI{lab}
	case plan.APIAway:
		return awayAPI{lab}
	case plan.KillOperator:
		return &killOperator{e: s.r.e, nodes: s.allNodes, seed: f.Seed}
	case plan.HangOperator:
		return hangOperator{lab, s.allNodes}
	default:
		return s.ask(f.Kind, name)
	}
}

// ask is what a person asks for.
func (s *scene) ask(kind plan.Kind, instance string) fault {
	switch kind {
	case plan.Switchover:
		return switchover{r: s.r, to: instance}
	case plan.SwitchoverWithdraw:
		return switchover{r: s.r, to: instance, back: s.instance(plan.Primary)}
	case plan.FenceInstance:
		return fenceInstance{s.r, instance}
	default:
		return unknown{kind}
	}
}

// unknown is a kind that the plan knows and this program does not.
type unknown struct{ kind plan.Kind }

func (u unknown) begin(context.Context) (string, error) {
	return "", fmt.Errorf("nobody knows how to do %s", u.kind)
}
func (unknown) heal(context.Context) (string, error) { return "", nil }
