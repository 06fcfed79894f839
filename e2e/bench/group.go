package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"cnmsql.co/operator/e2e/framework"
)

// group is another side: three servers with Group Replication in single-primary mode, which find failures and elect by
// themselves. It has no Service: an application asks every member, as a router does. So only its direct figure counts.
type group struct{ *plain }

// askWithin is how long a member may take to say what it is. One on a lost node says nothing.
const askWithin = time.Second

// Of Group Replication, how long a member is suspected before it is expelled, in seconds. A member is suspected after
// 5 s of silence, which cannot be changed.
const (
	expelAtOnce    = 0 // what makes it fastest
	expelByDefault = 5
)

const groupName = "group"

var groupKind = kind{
	name: groupName, options: groupOptions, grace: 30,
	privileges: ", CONNECTION_ADMIN, BACKUP_ADMIN",
}

// groupOptions leave to the defaults what is not needed to connect the members. A member joins when it is told to, so
// that one that was killed cannot come back before it is missed.
func groupOptions(n int) []string {
	var seeds []string
	for i := 1; i <= instances; i++ {
		seeds = append(seeds, host(fmt.Sprintf("%s-%d", groupName, i))+":33061")
	}
	return []string{
		"--plugin-load-add=group_replication.so",
		"--group-replication-group-name=3d4fc1a6-7b0e-4b7c-9d55-6d1a2f0c9b10",
		"--group-replication-start-on-boot=OFF",
		"--group-replication-local-address=" + seeds[n-1],
		"--group-replication-group-seeds=" + strings.Join(seeds, ","),
		"--group-replication-ip-allowlist=10.0.0.0/8", // by default it is the node's own Pods
		"--group-replication-recovery-use-ssl=ON",
	}
}

func (b *bench) groupFast(ctx context.Context) (*side, error) {
	return b.groupSide(ctx, "gr", expelAtOnce)
}

func (b *bench) groupByDefault(ctx context.Context) (*side, error) {
	return b.groupSide(ctx, "gr-default", expelByDefault)
}

// groupSide is the one group with a setting of its own. The first makes it.
func (b *bench) groupSide(ctx context.Context, name string, expelSeconds int) (*side, error) {
	if b.group == nil {
		p, err := b.plainServers(ctx, groupKind)
		if err != nil {
			return nil, err
		}
		b.group = &group{p}
		if err := b.group.begin(ctx); err != nil {
			return nil, err
		}
	}
	return b.group.side(name, expelSeconds), nil
}

func (g *group) side(name string, expelSeconds int) *side {
	b := g.b
	return &side{
		name: name, instances: g.names, db: g.database(), primary: g.primary, settle: g.settle,
		prepare: func(ctx context.Context) error {
			for _, member := range g.names {
				if err := g.exec(ctx, member, fmt.Sprintf("SET GLOBAL group_replication_member_expel_timeout = %d", expelSeconds)); err != nil {
					return err
				}
			}
			return nil
		},
		ways: map[string]way{
			"switchover": {do: g.switchOver},
			"kill":       {do: doing(b.killServer)},
			"delete":     {do: doing(b.deletePod), heal: g.restore},
			"oom":        {do: doing(b.exhaustMemory)},
			"container":  {do: doing(b.killContainer)},
			"node":       b.nodeWay(g.names, g.primary, g.move),
		},
		observe: func(ctx context.Context, t *timeline) error {
			return b.followPods(ctx, newObserver(t), client.MatchingLabels{plainLabel: groupKind.name}, roleLabel)
		},
	}
}

// begin lets the first member found the group and the others join it, unless there is one.
func (g *group) begin(ctx context.Context) error {
	if primary, err := g.primary(ctx); err == nil && primary != "" {
		return g.settle(ctx)
	}
	for i, name := range g.names {
		start := "START GROUP_REPLICATION"
		if i == 0 {
			start = "SET GLOBAL group_replication_bootstrap_group = ON; START GROUP_REPLICATION; SET GLOBAL group_replication_bootstrap_group = OFF"
		}
		if err := g.patiently(ctx, name, g.credentials()+"; "+start); err != nil {
			return err
		}
	}
	return g.settle(ctx)
}

func (g *group) credentials() string {
	return fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_USER = 'repl', SOURCE_PASSWORD = '%s' FOR CHANNEL 'group_replication_recovery'", g.password)
}

// member is one of a group as another one sees it.
type member struct{ host, state, role string }

// members are the group as one of its members sees it.
func (g *group) members(ctx context.Context, name string) ([]member, error) {
	rows, err := g.admin[name].QueryContext(ctx, "SELECT member_host, member_state, member_role FROM performance_schema.replication_group_members")
	if err != nil {
		return nil, fmt.Errorf("asking %s for the group: %w", name, err)
	}
	defer rows.Close()
	var list []member
	for rows.Next() {
		var m member
		if err := rows.Scan(&m.host, &m.state, &m.role); err != nil {
			return nil, fmt.Errorf("asking %s for the group: %w", name, err)
		}
		list = append(list, m)
	}
	return list, rows.Err()
}

// primary is the one that calls itself so and accepts writes; empty when none does.
func (g *group) primary(ctx context.Context) (string, error) {
	const writable = "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_id = @@GLOBAL.server_uuid " +
		"AND member_state = 'ONLINE' AND member_role = 'PRIMARY' AND NOT @@GLOBAL.super_read_only"
	return g.ask(ctx, writable)
}

// ask returns the first member for which a query says 1.
func (g *group) ask(ctx context.Context, question string) (string, error) {
	var errs []error
	for _, name := range g.names {
		quick, cancel := context.WithTimeout(ctx, askWithin)
		n, err := query[int](quick, g.admin[name], question)
		cancel()
		if err == nil && n == 1 {
			return name, nil
		}
		errs = append(errs, err)
	}
	return "", errors.Join(errs...)
}

// settle lets those join again that are out, and waits until all are in.
func (g *group) settle(ctx context.Context) error {
	return framework.Await(ctx, "three members of the group", readyWithin, func(ctx context.Context) (bool, string, error) {
		primary, err := g.primary(ctx)
		if err != nil || primary == "" {
			return false, "no primary", err
		}
		seen, err := g.members(ctx, primary)
		if err != nil {
			return false, "", err
		}
		online := 0
		for _, m := range seen {
			if m.state == "ONLINE" {
				online++
			}
		}
		if online == len(g.names) {
			return true, "", nil
		}
		return false, fmt.Sprintf("as %s sees it: %v", primary, seen), g.admit(ctx, seen)
	})
}

// admit starts Group Replication where it does not run, when the group has expelled that member.
func (g *group) admit(ctx context.Context, seen []member) error {
	in := map[string]bool{}
	for _, m := range seen {
		in[m.host] = true
	}
	for _, name := range g.names {
		if in[host(name)] {
			continue
		}
		if err := g.awaitServer(ctx, name); err != nil {
			return err
		}
		if err := g.patiently(ctx, name, "STOP GROUP_REPLICATION; "+g.credentials()+"; START GROUP_REPLICATION"); err != nil {
			return err
		}
	}
	return nil
}

// switchOver moves the role to another member, as a person asks for it.
func (g *group) switchOver(ctx context.Context, t *timeline, primary, other string) error {
	uuid, err := query[string](ctx, g.admin[other], "SELECT @@GLOBAL.server_uuid")
	if err != nil {
		return err
	}
	return timed(t, "group_replication_set_as_primary", func() error {
		return g.patiently(ctx, primary, "SELECT group_replication_set_as_primary('"+uuid+"')")
	})
}

// move is switchOver for the preparation of a run.
func (g *group) move(ctx context.Context, primary, other string) error {
	return g.switchOver(ctx, nil, primary, other)
}
