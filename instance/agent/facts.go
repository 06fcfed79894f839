package agent

import (
	"slices"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/lease"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// intentOf is what a Cluster, with its defaults, means to an instance; nil is a Cluster that was not seen.
func intentOf(c *api.Cluster, instance string) role.Intent {
	if c == nil {
		return role.Intent{}
	}
	s := &c.Status
	i := role.Intent{
		Known:          true,
		CurrentPrimary: s.CurrentPrimary,
		Generation:     s.CurrentPrimaryGeneration,
		Diverged:       slices.Contains(s.DivergedInstances, instance),
		Fenced:         slices.Contains(s.FencedInstances, instance),
		FenceAsked:     slices.Contains(api.ParseFencing(c.Annotations[api.AnnotationFencing]), instance),
		AckCount:       ackCount(c),
	}
	if t := s.PrimaryTransition; t != nil {
		i.Transition = &role.Transition{
			Attempt: t.Attempt, Kind: role.Kind(t.Kind), From: t.From, To: t.To, Generation: t.Generation,
		}
	}
	if text := s.PromotionGTIDExecuted; text != "" {
		if set, err := gtid.Parse(text); err == nil {
			i.PromotionExecuted = &set
		} else {
			i.PromotionUnreadable = true
		}
	}
	return i
}

// ViewOf is the Cluster, with its defaults, as far as it says for or against the holder of the lease; nil is a
// Cluster that was not seen.
func ViewOf(c *api.Cluster, instance string) lease.View {
	if c == nil {
		return lease.View{}
	}
	s := &c.Status
	v := lease.View{
		Known: true, Generation: s.CurrentPrimaryGeneration, Primary: s.CurrentPrimary, Instances: others(c, instance), Fenced: s.FencedInstances,
	}
	if slices.Contains(s.InstanceNames, instance) {
		v.Instances = append(v.Instances, instance)
	}
	if t := s.PrimaryTransition; t != nil {
		v.Target, v.TargetGeneration = t.To, t.Generation
	}
	return v
}

// ackCount is how many acknowledgements a primary begins with: the number that the operator has published,
// else the configured one. The server knows no number below one.
func ackCount(c *api.Cluster) int {
	n := c.Spec.MinSyncReplicas
	if s := c.Status.SemiSync; s != nil && s.Effective > 0 {
		n = s.Effective
	}
	return max(1, int(n))
}

// others is every other instance that the Cluster speaks of.
func others(c *api.Cluster, instance string) []string {
	names := slices.Clone(c.Status.InstanceNames)
	names = append(names, c.Status.CurrentPrimary)
	if t := c.Status.PrimaryTransition; t != nil {
		names = append(names, t.From, t.To)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return slices.DeleteFunc(names, func(n string) bool { return n == "" || n == instance })
}

// whom is which of them have to be asked: a replica compares itself with the primary alone.
func whom(c *api.Cluster, i role.Intent, instance string) []string {
	if t := i.Transition; i.CurrentPrimary == "" || i.CurrentPrimary == instance || (t != nil && t.To == instance) {
		return others(c, instance)
	}
	return []string{i.CurrentPrimary}
}

// peersOf is what the reports of others say; one whose server did not answer says nothing of what it holds.
func peersOf(reports []protocol.Report, diverged []string) []role.Peer {
	var out []role.Peer
	for i := range reports {
		r := &reports[i]
		if r.MySQL == nil {
			continue
		}
		out = append(out, role.Peer{
			Instance: r.Instance, ServerUUID: r.MySQL.ServerUUID, Generation: r.Role.Generation,
			Executed: r.MySQL.Executed, Held: r.MySQL.Held(), ReadOnly: !r.MySQL.Writable(), Diverged: slices.Contains(diverged, r.Instance),
		})
	}
	return out
}
