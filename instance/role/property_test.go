package role_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// The generators draw from few values, so that coincidences (the own name, equal sets, the present attempt)
// are common.

func anySet(t *rapid.T, label string) gtid.Set {
	text := ""
	for _, uuid := range []string{uuidA, uuidB} {
		if n := rapid.IntRange(0, 3).Draw(t, label); n > 0 {
			text += fmt.Sprintf("%s:1-%d,", uuid, n)
		}
	}
	s, err := gtid.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func maybeSet(t *rapid.T, label string) *gtid.Set {
	if rapid.Bool().Draw(t, label+" is there") {
		return new(anySet(t, label))
	}
	return nil
}

func anyInstance(t *rapid.T, label string) string {
	return rapid.SampledFrom([]string{"", "a", "b", "b", "c"}).Draw(t, label)
}

func anyReplication(t *rapid.T) *protocol.Replication {
	if rapid.IntRange(0, 3).Draw(t, "no replication") == 0 {
		return nil
	}
	flag := func(l string) bool { return rapid.Bool().Draw(t, l) }
	r := &protocol.Replication{SourceHost: rapid.SampledFrom([]string{"a", "c"}).Draw(t, "source") + ".ns.svc", Received: anySet(t, "received")}
	r.IORunning, r.SQLRunning = flag("io runs"), flag("sql runs")
	r.IOErrno = rapid.SampledFrom([]int{0, 0, 2003}).Draw(t, "io errno")
	r.SQLErrno = rapid.SampledFrom([]int{0, 0, 0, 1062}).Draw(t, "sql errno")
	return r
}

func anyMySQL(t *rapid.T) *protocol.MySQL {
	flag := func(l string) bool { return rapid.Bool().Draw(t, l) }
	m := &protocol.MySQL{ServerUUID: uuidB, Executed: anySet(t, "executed"), Replication: anyReplication(t)}
	// SuperReadOnly implies ReadOnly, as in the server.
	switch rapid.IntRange(0, 4).Draw(t, "read-only") {
	case 0:
	case 1:
		m.ReadOnly = true
	default:
		m.ReadOnly, m.SuperReadOnly = true, true
	}
	m.Offline = rapid.IntRange(0, 3).Draw(t, "offline") == 0
	m.SemiSync = protocol.SemiSync{SourceEnabled: flag("source"), ReplicaEnabled: flag("replica"), WaitFor: rapid.IntRange(1, 2).Draw(t, "wait for")}
	m.SemiSync.SourceActive, m.SemiSync.Waiting = m.SemiSync.SourceEnabled, rapid.IntRange(0, 1).Draw(t, "waiting")
	m.SemiSync.Clients = rapid.IntRange(0, 2).Draw(t, "clients")
	// A side whose plugin is not loaded is off.
	m.SemiSync.SourceMissing = !m.SemiSync.SourceEnabled && rapid.IntRange(0, 2).Draw(t, "no source plugin") == 0
	m.SemiSync.ReplicaMissing = !m.SemiSync.ReplicaEnabled && rapid.IntRange(0, 2).Draw(t, "no replica plugin") == 0
	return m
}

func anyPeers(t *rapid.T) *role.Peers {
	if rapid.IntRange(0, 3).Draw(t, "not asked") == 0 {
		return nil
	}
	p := &role.Peers{SinceLease: rapid.Bool().Draw(t, "since lease")}
	for _, name := range []string{"a", "c"} {
		if rapid.Bool().Draw(t, name+" answers") {
			executed := anySet(t, name+" executed")
			p.Answers = append(p.Answers, role.Peer{
				Instance: name, ServerUUID: uuidA, Generation: rapid.Int64Range(1, 3).Draw(t, name+" generation"),
				Executed: executed, Held: executed.Union(anySet(t, name+" received")), Diverged: rapid.IntRange(0, 4).Draw(t, name+" diverged") == 0,
				ReadOnly: rapid.IntRange(0, 3).Draw(t, name+" writable") > 0,
			})
		} else if rapid.Bool().Draw(t, name+" is silent") {
			p.Silent = append(p.Silent, name)
		}
	}
	return p
}

func anyLease(t *rapid.T) role.LeaseFacts {
	flag := func(l string) bool { return rapid.Bool().Draw(t, l) }
	l := role.LeaseFacts{Known: rapid.IntRange(0, 9).Draw(t, "lease unknown") > 0}
	if !l.Known {
		return l
	}
	switch rapid.IntRange(0, 3).Draw(t, "lease") {
	case 0:
	case 1:
		l.Holder, l.Expired = "a/1", flag("expired")
		if flag("promised") {
			l.PromisedTo = "a/1"
		}
	default:
		l.Holder, l.Mine, l.InForce = "b/1", true, flag("in force")
	}
	l.Unwatched = rapid.IntRange(0, 5).Draw(t, "unwatched") == 0
	l.Handoff, l.HandoffAttempt = maybeSet(t, "handoff"), rapid.SampledFrom([]string{"", "x1"}).Draw(t, "handoff attempt")
	return l
}

func anyFacts(t *rapid.T) role.Facts {
	flag := func(l string) bool { return rapid.Bool().Draw(t, l) }
	f := role.Facts{Instance: "b", SemiSync: flag("semi-sync"), Lease: anyLease(t), Peers: anyPeers(t), RetryDue: flag("retry due"), LatelyPrimary: flag("lately primary"), LetGo: flag("let go")}
	switch rapid.IntRange(0, 6).Draw(t, "server") {
	case 0:
		f.ServerGone = true
	case 1:
	default:
		f.ServerRunning, f.MySQL = true, anyMySQL(t)
	}
	f.ShuttingDown = rapid.IntRange(0, 4).Draw(t, "shutting down") == 0
	f.StepDownDue = f.ShuttingDown && flag("step-down due")
	if rapid.IntRange(0, 3).Draw(t, "closed by another") == 0 {
		f.Closed = &role.Closed{Recorded: flag("recorded"), Wait: time.Duration(rapid.IntRange(0, 1).Draw(t, "wait"))}
	}
	switch rapid.IntRange(0, 5).Draw(t, "refusal") {
	case 0:
		f.Refusal = &role.Refusal{Attempt: "x1", Why: "refused"}
	case 1:
		f.Refusal = &role.Refusal{Generation: 2, Why: "refused"}
	}
	return f
}

func anyIntent(t *rapid.T) role.Intent {
	i := role.Intent{Known: rapid.IntRange(0, 9).Draw(t, "cluster unknown") > 0}
	if !i.Known {
		return i
	}
	i.Live = rapid.Bool().Draw(t, "live")
	i.CurrentPrimary, i.Generation = anyInstance(t, "current primary"), rapid.Int64Range(1, 3).Draw(t, "generation")
	i.PromotionExecuted = maybeSet(t, "promotion executed")
	i.PromotionUnreadable = i.PromotionExecuted == nil && rapid.IntRange(0, 4).Draw(t, "unreadable") == 0
	i.Diverged = rapid.IntRange(0, 5).Draw(t, "diverged") == 0
	i.AckCount = rapid.IntRange(1, 2).Draw(t, "acks")
	if rapid.Bool().Draw(t, "transition") {
		i.Transition = &role.Transition{
			Attempt: rapid.SampledFrom([]string{"x0", "x1"}).Draw(t, "attempt"),
			Kind:    rapid.SampledFrom([]role.Kind{role.Bootstrap, role.Switchover, role.Failover}).Draw(t, "kind"),
			From:    anyInstance(t, "from"), To: anyInstance(t, "to"),
			Generation: i.Generation + rapid.Int64Range(0, 1).Draw(t, "transition generation"),
		}
	}
	return i
}

// what the properties ask of facts and intent, written anew rather than taken from the package.

func holds(f role.Facts) bool { return f.Lease.Known && f.Lease.Mine && f.Lease.InForce }

func pending(i role.Intent) *role.Transition {
	if i.Transition != nil && i.Transition.Generation == i.Generation+1 {
		return i.Transition
	}
	return nil
}

func target(f role.Facts, i role.Intent) bool {
	t := pending(i)
	return t != nil && t.To == f.Instance
}

func unapplied(f role.Facts) bool {
	return f.MySQL != nil && f.MySQL.Replication != nil && !f.MySQL.Executed.Contains(f.MySQL.Replication.Received)
}

func receives(f role.Facts) bool { return f.MySQL.Replication != nil && f.MySQL.Replication.IORunning }

func readOnly(f role.Facts) bool { return f.ServerGone || (f.MySQL != nil && f.MySQL.SuperReadOnly) }

func comparedSinceLease(f role.Facts) bool { return f.Peers != nil && f.Peers.SinceLease }

// promises are what each kind of step guarantees about the facts it was chosen for.
var promises = map[role.StepKind]func(role.Facts, role.Intent, role.Decision) string{
	role.OpenWrites: func(f role.Facts, i role.Intent, _ role.Decision) string {
		switch {
		case !i.Known || !i.Live:
			return "the Cluster was not read from the API server just now"
		case i.CurrentPrimary != f.Instance:
			return "it is not the current primary"
		case pending(i) != nil:
			return "a transition is under way"
		case !holds(f):
			return "the lease is not in force"
		case f.Lease.Unwatched:
			return "nobody watches the manager"
		case f.Closed != nil && !f.Closed.Recorded:
			return "it is opened against somebody else without a record"
		case f.Closed != nil && (len(f.Peers.Silent) > 0 || slices.ContainsFunc(f.Peers.Answers, func(p role.Peer) bool {
			return !p.ReadOnly || !f.MySQL.Executed.Contains(p.Held)
		})):
			return "it is opened against somebody else without a look at all others"
		case i.Diverged || f.ShuttingDown || i.PromotionUnreadable || (i.PromotionExecuted == nil && i.Generation > 1):
			return "it may not be opened"
		case i.PromotionExecuted != nil && !f.MySQL.Executed.Contains(*i.PromotionExecuted):
			return "it lost what it had at its promotion"
		case receives(f) || unapplied(f):
			return "it still replicates"
		case !comparedSinceLease(f):
			return "nobody was compared with since the lease was taken"
		case f.SemiSync != f.MySQL.SemiSync.SourceEnabled:
			return "semi-sync is not as configured"
		}
		return ""
	},
	role.RecordReassert: func(f role.Facts, _ role.Intent, _ role.Decision) string {
		if f.Closed == nil || f.Closed.Wait > 0 || !holds(f) {
			return "there is nothing to record"
		}
		return ""
	},
	role.Claim: func(f role.Facts, i role.Intent, d role.Decision) string {
		switch {
		case !target(f, i) || d.Step.Attempt != i.Transition.Attempt:
			return "no transition names it"
		case !holds(f):
			return "the lease is not in force"
		case !f.MySQL.SuperReadOnly || receives(f) || unapplied(f):
			return "the executed set may still grow"
		case i.Diverged || f.ShuttingDown || f.SemiSync && f.MySQL.SemiSync.SourceMissing:
			return "it may not be promoted"
		case !comparedSinceLease(f):
			return "nobody was compared with since the lease was taken"
		case i.Transition.Kind == role.Switchover && (f.Lease.Handoff == nil || f.Lease.HandoffAttempt != i.Transition.Attempt || !f.MySQL.Executed.Contains(*f.Lease.Handoff)):
			return "the handoff is not executed"
		case d.Step.Executed == nil || !d.Step.Executed.Equal(f.MySQL.Executed):
			return "the claim records another set"
		}
		for _, p := range f.Peers.Answers {
			if !p.Diverged && !f.MySQL.Executed.Contains(p.Held) {
				return p.Instance + " holds more"
			}
		}
		return ""
	},
	role.ReleaseLease: func(f role.Facts, i role.Intent, d role.Decision) string {
		switch {
		case !f.Lease.Mine:
			return "the lease is not its own"
		case !readOnly(f):
			return "the server may be writable"
		case d.Step.Executed != nil && (f.ServerGone || i.CurrentPrimary != f.Instance && !f.StepDownDue):
			return "a handoff from somebody who is not the primary"
		}
		return ""
	},
	role.AcquireLease: func(f role.Facts, i role.Intent, _ role.Decision) string {
		switch {
		case f.Lease.PromisedTo != "":
			return "it has promised not to take it"
		case f.Lease.Unwatched:
			return "nobody watches the manager"
		case f.Lease.Holder != "" && !f.Lease.Mine && !f.Lease.Expired:
			return "the lease is another's"
		case i.CurrentPrimary != f.Instance && !target(f, i):
			return "it has no use for the lease"
		case pending(i) != nil && !target(f, i):
			return "the role goes elsewhere"
		case f.MySQL == nil || !f.MySQL.SuperReadOnly:
			return "the server is not read-only"
		}
		return ""
	},
	role.Follow: func(f role.Facts, i role.Intent, d role.Decision) string {
		switch {
		case pending(i) != nil:
			return "the primary is being changed"
		case unapplied(f):
			return "what was received is not applied and would be thrown away"
		case !f.MySQL.SuperReadOnly || i.Diverged:
			return "it may not follow now"
		case d.Step.Source != i.CurrentPrimary || d.Step.Source == f.Instance || d.Step.Source == "":
			return "the source is not the primary"
		}
		return compared(f, i)
	},
	role.ResetReplica: func(f role.Facts, i role.Intent, _ role.Decision) string {
		switch {
		case unapplied(f):
			return "what was received is not applied and would be thrown away"
		case i.CurrentPrimary != f.Instance || !holds(f) || pending(i) != nil || !f.MySQL.Writable() || receives(f):
			return "only an open primary needs this"
		}
		return ""
	},
	role.StartReplica: func(f role.Facts, i role.Intent, _ role.Decision) string {
		switch {
		case !f.MySQL.SuperReadOnly || i.Diverged || f.MySQL.Replication == nil:
			return "it may not replicate now"
		case target(f, i):
			return ""
		case pending(i) != nil:
			return "the primary is being changed"
		}
		return compared(f, i)
	},
	role.Acknowledge: func(f role.Facts, _ role.Intent, _ role.Decision) string {
		if !f.SemiSync || f.MySQL.SemiSync.ReplicaEnabled || f.MySQL.SemiSync.ReplicaMissing {
			return "there is nothing to switch on"
		}
		return ""
	},
	role.SourceSemiSync: func(f role.Facts, i role.Intent, _ role.Decision) string {
		switch {
		case i.CurrentPrimary != f.Instance || !holds(f):
			return "it is not the primary"
		case f.SemiSync && f.MySQL.SemiSync.SourceMissing:
			return "there is nothing to switch on"
		}
		return ""
	},
	role.StartApplier: func(f role.Facts, _ role.Intent, _ role.Decision) string {
		if f.MySQL.SemiSync.SourceEnabled {
			return "its commits would wait for acknowledgements"
		}
		return ""
	},
	role.StopReceiver: func(f role.Facts, i role.Intent, _ role.Decision) string {
		if t := pending(i); t != nil && t.To != f.Instance {
			return "a bystander stops receiving while the primary is being changed"
		}
		return ""
	},
	role.AdmitClients: func(f role.Facts, i role.Intent, _ role.Decision) string {
		switch {
		case !f.MySQL.Offline:
			return "clients are admitted"
		case pending(i) != nil || i.CurrentPrimary == "":
			return "nobody knows who will be the primary"
		case f.MySQL.Writable():
			if !holds(f) || i.CurrentPrimary != f.Instance {
				return "it is not the primary"
			}
			return ""
		case i.CurrentPrimary == f.Instance || f.LatelyPrimary:
			return "clients come here to write"
		case f.MySQL.Replication == nil || !f.MySQL.Replication.IORunning || !f.MySQL.Replication.SQLRunning:
			return "it does not follow the primary"
		}
		return ""
	},
	role.Rest: func(f role.Facts, i role.Intent, _ role.Decision) string {
		if pending(i) != nil {
			return "at rest while the primary is being changed"
		}
		if f.MySQL.Offline {
			return "at rest while clients are refused"
		}
		if f.MySQL.Writable() {
			return ""
		}
		if r := f.MySQL.Replication; r == nil || !r.IORunning || !r.SQLRunning {
			return "a replica rests without replicating"
		}
		return ""
	},
}

// compared says why an instance may not attach to the primary.
func compared(f role.Facts, i role.Intent) string {
	if f.Peers == nil {
		return "the primary was not asked"
	}
	for _, p := range f.Peers.Answers {
		if p.Instance != i.CurrentPrimary {
			continue
		}
		errant := f.MySQL.Held().Minus(p.Executed).Minus(f.MySQL.Held().BySource(p.ServerUUID))
		if !errant.IsEmpty() {
			return "it holds what the primary does not"
		}
		if p.Generation != i.Generation {
			return "the answer is of another generation"
		}
		return ""
	}
	return "the primary did not answer"
}

func TestEveryStepKeepsItsPromiseWhateverTheFacts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, i := anyFacts(t), anyIntent(t)
		d := role.Decide(f, i)
		if d.Why == "" {
			t.Fatalf("%q without a reason", d.Step.Kind)
		}
		if d.Role != role.Primary && d.Role != role.Replica && d.Role != role.None {
			t.Fatalf("role %q", d.Role)
		}
		if promise := promises[d.Step.Kind]; promise != nil {
			if broken := promise(f, i, d); broken != "" {
				t.Fatalf("%q (%s) although %s", d.Step.Kind, d.Why, broken)
			}
		}
	})
}

func TestAWritableServerIsEitherThePrimaryWithTheLeaseOrDemoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, i := anyFacts(t), anyIntent(t)
		f.ServerRunning, f.ServerGone, f.MySQL = true, false, anyMySQL(t)
		f.MySQL.ReadOnly, f.MySQL.SuperReadOnly = false, false
		d := role.Decide(f, i)
		may := i.Known && f.Lease.Known && i.CurrentPrimary == f.Instance && holds(f) && !f.Lease.Unwatched && !f.StepDownDue && pending(i) == nil
		s := f.MySQL.SemiSync
		vain := f.LetGo && f.SemiSync && s.SourceEnabled && s.Waiting > 0 // what only a step-down ends
		if may && !vain && d.Step.Kind == role.Demote {
			t.Fatalf("the primary is demoted: %s", d.Why)
		}
		if !may && d.Step.Kind != role.Demote && !target(f, i) {
			t.Fatalf("%q (%s) while writable", d.Step.Kind, d.Why)
		}
	})
}

// answered does what the loop does with a question: it decides again with the answer.
func TestNoQuestionIsAskedTwiceOfTheSameFacts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, i := anyFacts(t), anyIntent(t)
		asked := map[role.StepKind]bool{}
		for {
			d := role.Decide(f, i)
			if d.Step.Kind != role.AskPeers && d.Step.Kind != role.Confirm {
				return
			}
			if asked[d.Step.Kind] {
				t.Fatalf("%q again (%s)", d.Step.Kind, d.Why)
			}
			asked[d.Step.Kind] = true
			if d.Step.Kind == role.AskPeers {
				f.Peers = &role.Peers{SinceLease: holds(f)}
				if p := anyPeers(t); p != nil {
					f.Peers.Answers = p.Answers
				}
			} else {
				i.Live = true
			}
		}
	})
}
