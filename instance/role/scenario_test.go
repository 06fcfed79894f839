package role_test

import (
	"testing"

	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

const (
	uuidA = "aaaaaaaa-0000-0000-0000-000000000001"
	uuidB = "bbbbbbbb-0000-0000-0000-000000000002"
)

func set(t testing.TB, text string) gtid.Set {
	t.Helper()
	s, err := gtid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// scenario is an instance "b" of a Cluster with a primary "a", before a mutator makes it a case.
type scenario struct {
	t testing.TB
	f role.Facts
	i role.Intent
}

func (s *scenario) set(text string) gtid.Set { return set(s.t, text) }

// healthyReplica is b, which follows a.
func healthyReplica(t testing.TB) *scenario {
	s := &scenario{t: t}
	s.f = role.Facts{
		Instance: "b", ServerRunning: true,
		MySQL: &protocol.MySQL{
			ServerUUID: uuidB, ReadOnly: true, SuperReadOnly: true,
			Executed: s.set(uuidA + ":1-100"),
			Replication: &protocol.Replication{
				SourceHost: "a.ns.svc", SourceUUID: uuidA, IORunning: true, Connected: true, SQLRunning: true,
				Received: s.set(uuidA + ":50-100"),
			},
		},
		Lease: role.LeaseFacts{Known: true, Holder: "a/1"},
	}
	s.i = role.Intent{Known: true, CurrentPrimary: "a", Generation: 3, AckCount: 1}
	executed := s.set(uuidA + ":1-10")
	s.i.PromotionExecuted = &executed
	return s
}

// promotable is b, named by a failover, with the lease, everything applied, and all peers asked since.
func promotable(t testing.TB) *scenario {
	s := healthyReplica(t)
	s.f.MySQL.Replication.IORunning, s.f.MySQL.Replication.SQLRunning = false, false
	s.f.Lease = role.LeaseFacts{Known: true, Holder: "b/1", Mine: true, InForce: true}
	s.f.Peers = &role.Peers{SinceLease: true, Answers: []role.Peer{
		{Instance: "c", ServerUUID: "c", Generation: 3, Executed: s.set(uuidA + ":1-90"), Held: s.set(uuidA + ":1-99")},
	}}
	s.i.Transition = &role.Transition{Attempt: "x1", Kind: role.Failover, From: "a", To: "b", Generation: 4}
	return s
}

// switchover makes it a switchover whose handoff has been recorded.
func (s *scenario) switchover() *scenario {
	s.i.Transition.Kind = role.Switchover
	handoff := s.set(uuidA + ":1-100")
	s.f.Lease.Handoff, s.f.Lease.HandoffAttempt = &handoff, "x1"
	return s
}

// promoted is b right after its claim: named in generation 4, not writable yet.
func promoted(t testing.TB) *scenario {
	s := promotable(t)
	s.i.CurrentPrimary, s.i.Generation = "b", 4
	executed := s.f.MySQL.Executed
	s.i.PromotionExecuted = &executed
	s.f.MySQL.Replication = nil
	s.i.Live = true
	return s
}

// healthyPrimary is b, writable.
func healthyPrimary(t testing.TB) *scenario {
	s := promoted(t)
	s.i.Transition, s.i.Live = nil, false
	s.f.Peers = nil
	s.f.MySQL.ReadOnly, s.f.MySQL.SuperReadOnly = false, false
	return s
}

// steppingDown makes the primary b give its role to c.
func steppingDown(t testing.TB) *scenario {
	s := healthyPrimary(t)
	s.i.Transition = &role.Transition{Attempt: "x2", Kind: role.Switchover, From: "b", To: "c", Generation: 5}
	return s
}

type ruleCase struct {
	name  string
	start func(testing.TB) *scenario
	alter func(*scenario)
	want  role.StepKind
	// check looks at the rest of the decision.
	check func(*testing.T, *scenario, role.Decision)
}

func runCases(t *testing.T, cases []ruleCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := c.start(t)
			if c.alter != nil {
				c.alter(s)
			}
			d := role.Decide(s.f, s.i)
			if d.Step.Kind != c.want {
				t.Fatalf("step %q (%s), want %q", d.Step.Kind, d.Why, c.want)
			}
			if d.Why == "" {
				t.Error("the decision does not say why")
			}
			if c.check != nil {
				c.check(t, s, d)
			}
		})
	}
}
