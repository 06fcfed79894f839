package semisync

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

const uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

func set(t *testing.T, ranges string) gtid.Set {
	t.Helper()
	s, err := gtid.Parse(uuid + ":" + ranges)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// healthy is c1 with its primary c1-1, two replicas that acknowledge, and one acknowledgement asked for.
func healthy(t *testing.T) facts {
	t.Helper()
	c := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1", UID: "uid-of-c1"}}
	c.Spec.Instances, c.Spec.MinSyncReplicas = 3, 1
	c.Spec.MySQL.SemiSync = &api.SemiSyncConfiguration{Enabled: true}
	c.Default()
	c.Status.InstanceNames = []string{"c1-1", "c1-2", "c1-3"}
	c.Status.CurrentPrimary, c.Status.CurrentPrimaryGeneration = "c1-1", 3
	c.Status.SemiSync = &api.SemiSyncStatus{Configured: 1, Effective: 1, Ackers: []string{"c1-2", "c1-3"}, Active: true}
	primary := &protocol.Report{
		Instance: "c1-1", Boot: "b1", Sequence: 10, Role: protocol.Role{Name: api.RolePrimary, Generation: 3},
		MySQL: &protocol.MySQL{Executed: set(t, "1-100"), SemiSync: protocol.SemiSync{SourceEnabled: true, SourceActive: true, WaitFor: 1, Clients: 2}},
	}
	replica := func(name string) *protocol.Report {
		return &protocol.Report{Instance: name, Role: protocol.Role{Name: api.RoleReplica, Generation: 3}, MySQL: &protocol.MySQL{
			Executed:    set(t, "1-90"),
			Replication: &protocol.Replication{SourceHost: "c1-1.shop.svc", IORunning: true, Connected: true, SQLRunning: true, Received: set(t, "91-100")},
			SemiSync:    protocol.SemiSync{ReplicaEnabled: true, ReplicaActive: true},
		}}
	}
	return facts{cluster: c, reports: map[string]*protocol.Report{"c1-1": primary, "c1-2": replica("c1-2"), "c1-3": replica("c1-3")}}
}

// two asks for two acknowledgements, of which so many are in effect and waited for.
func two(f *facts, effective int32, waitFor int) {
	f.cluster.Spec.MinSyncReplicas, f.cluster.Status.SemiSync.Effective = 2, effective
	f.reports["c1-1"].MySQL.SemiSync.WaitFor = waitFor
}

func TestDecide(t *testing.T) {
	type expect struct {
		is        metav1.ConditionStatus
		reason    string
		says      string
		effective int32
		ackers    []string
		active    bool
		asked     int // 0: nothing is asked of the primary
	}
	both := []string{"c1-2", "c1-3"}
	for _, tc := range []struct {
		name  string
		given func(*facts)
		want  expect
	}{
		{"all is well", func(*facts) {}, expect{metav1.ConditionTrue, api.ReasonHealthy, "1 ack", 1, both, true, 0}},
		{
			"the server has it off", func(f *facts) { f.reports["c1-1"].MySQL.SemiSync.SourceEnabled = false },
			expect{metav1.ConditionFalse, api.ReasonSemiSyncOff, "switched off", 1, both, false, 0},
		},
		{
			"the server went on without acknowledgements", func(f *facts) { f.reports["c1-1"].MySQL.SemiSync.SourceActive = false },
			expect{metav1.ConditionFalse, api.ReasonSemiSyncOff, "without acknowledgements", 1, both, false, 0},
		},
		{
			"nobody acknowledges", func(f *facts) { delete(f.reports, "c1-2"); delete(f.reports, "c1-3") },
			expect{metav1.ConditionFalse, api.ReasonSemiSyncStalled, "0 replicas", 1, nil, true, 0},
		},
		{
			"a diverged replica does not count", func(f *facts) { f.cluster.Status.DivergedInstances = []string{"c1-3"} },
			expect{metav1.ConditionTrue, api.ReasonHealthy, "", 1, []string{"c1-2"}, true, 0},
		},
		{
			"a replica whose receiver stopped does not count", func(f *facts) { f.reports["c1-2"].MySQL.Replication.IORunning = false },
			expect{metav1.ConditionTrue, api.ReasonHealthy, "", 1, []string{"c1-3"}, true, 0},
		},
		{
			"a replica that follows another instance does not count", func(f *facts) { f.reports["c1-2"].MySQL.Replication.SourceHost = "c1-3.shop.svc" },
			expect{metav1.ConditionTrue, api.ReasonHealthy, "", 1, []string{"c1-3"}, true, 0},
		},
		{
			"a replica that has not applied anything for long counts", func(f *facts) { f.reports["c1-2"].MySQL.Replication.SecondsBehind = new(int64(9999)) },
			expect{metav1.ConditionTrue, api.ReasonHealthy, "", 1, both, true, 0},
		},
		{
			"the replica side is off somewhere",
			func(f *facts) { f.reports["c1-3"].MySQL.SemiSync = protocol.SemiSync{} },
			expect{metav1.ConditionFalse, api.ReasonConfigurationNotApplied, "c1-3", 1, []string{"c1-2"}, true, 0},
		},
		{
			"raised: the primary is told, the status waits", func(f *facts) { f.cluster.Spec.MinSyncReplicas = 2 },
			expect{metav1.ConditionFalse, api.ReasonConfigurationNotApplied, "waits for 1", 1, both, true, 2},
		},
		{
			"lowered: the status does not wait",
			func(f *facts) { f.cluster.Status.SemiSync.Effective = 2; f.reports["c1-1"].MySQL.SemiSync.WaitFor = 2 },
			expect{metav1.ConditionFalse, api.ReasonConfigurationNotApplied, "waits for 2", 1, both, true, 1},
		},
		{
			"a primary that waits for fewer than the status says lowers it",
			func(f *facts) { f.cluster.Spec.MinSyncReplicas = 2; f.cluster.Status.SemiSync.Effective = 2 },
			expect{metav1.ConditionFalse, api.ReasonConfigurationNotApplied, "waits for 1", 1, both, true, 2},
		},
		{
			"two are wanted and one can: the status says one, then the primary is asked",
			func(f *facts) { two(f, 2, 2); delete(f.reports, "c1-3") },
			expect{metav1.ConditionFalse, api.ReasonConfigurationNotApplied, "waits for 2", 1, []string{"c1-2"}, true, 1},
		},
		{
			"two are wanted, and one it is",
			func(f *facts) { two(f, 1, 1); delete(f.reports, "c1-3") },
			expect{metav1.ConditionFalse, api.ReasonSemiSyncLowered, "waits for 1 acknowledgements and not for 2, since only c1-2", 1, []string{"c1-2"}, true, 0},
		},
		{
			"never below one",
			func(f *facts) { two(f, 1, 1); delete(f.reports, "c1-2"); delete(f.reports, "c1-3") },
			expect{metav1.ConditionFalse, api.ReasonSemiSyncStalled, "0 replicas", 1, nil, true, 0},
		},
		{
			"one that is back raises it again: the primary is told, the status waits",
			func(f *facts) { two(f, 1, 1) },
			expect{metav1.ConditionFalse, api.ReasonConfigurationNotApplied, "waits for 1", 1, both, true, 2},
		},
		{
			"one that lags far behind counts still",
			func(f *facts) { two(f, 2, 2); f.reports["c1-3"].MySQL.Replication.SecondsBehind = new(int64(9999)) },
			expect{metav1.ConditionTrue, api.ReasonHealthy, "2 ack", 2, both, true, 0},
		},
		{
			"where durability goes first nothing is lowered",
			func(f *facts) {
				two(f, 2, 2)
				f.cluster.Spec.MySQL.SemiSync.DataDurability = api.DurabilityRequired
				delete(f.reports, "c1-3")
			},
			expect{metav1.ConditionFalse, api.ReasonSemiSyncStalled, "1 replicas acknowledge (c1-2) and 2 are needed", 2, []string{"c1-2"}, true, 0},
		},
		{
			"of a silent primary nothing is lowered",
			func(f *facts) { two(f, 2, 2); delete(f.reports, "c1-1"); delete(f.reports, "c1-3") },
			expect{metav1.ConditionUnknown, api.ReasonPrimaryUnreachable, "c1-1", 2, []string{"c1-2"}, true, 0},
		},
		{
			"a silent primary changes nothing", func(f *facts) { delete(f.reports, "c1-1") },
			expect{metav1.ConditionUnknown, api.ReasonPrimaryUnreachable, "c1-1", 1, both, true, 0},
		},
		{
			"a former primary's report is not the primary's", func(f *facts) { f.reports["c1-1"].Role.Generation = 2; f.reports["c1-1"].MySQL.SemiSync.WaitFor = 7 },
			expect{metav1.ConditionUnknown, api.ReasonPrimaryUnreachable, "c1-1", 1, both, true, 0},
		},
		{
			"no primary yet",
			func(f *facts) {
				f.cluster.Status.CurrentPrimary, f.cluster.Status.SemiSync = "", nil
				f.reports = map[string]*protocol.Report{}
			},
			expect{metav1.ConditionUnknown, api.ReasonNoPrimary, "", 0, nil, false, 0},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := healthy(t)
			tc.given(&f)
			d := decide(f)
			asked := 0
			if d.settings != nil {
				asked = d.settings.WaitFor
				if d.settings.Generation != 3 {
					t.Errorf("asked for generation %d", d.settings.Generation)
				}
			}
			if d.condition.Status != tc.want.is || d.condition.Reason != tc.want.reason || !strings.Contains(d.condition.Message, tc.want.says) {
				t.Errorf("condition %+v", d.condition)
			}
			if s := d.status; s.Configured != f.cluster.Spec.MinSyncReplicas || s.Effective != tc.want.effective || s.Active != tc.want.active || !slices.Equal(s.Ackers, tc.want.ackers) {
				t.Errorf("status %+v", *s)
			}
			if asked != tc.want.asked {
				t.Errorf("asked for %d, want %d", asked, tc.want.asked)
			}
		})
	}
}

func TestClusterWithoutSemiSyncIsComparedToo(t *testing.T) {
	f := healthy(t)
	f.cluster.Spec.MySQL.SemiSync.Enabled = false
	if d := decide(f); d.status != nil || d.settings != nil || d.condition.Status != metav1.ConditionFalse {
		t.Errorf("still on at the server: %+v", d)
	}
	f.reports["c1-1"].MySQL.SemiSync.SourceEnabled = false
	if d := decide(f); d.condition.Status != metav1.ConditionTrue || d.condition.Reason != api.ReasonSemiSyncNotConfigured {
		t.Errorf("condition %+v", d.condition)
	}
}

func TestRaisedNumberIsShownOnlyWhenThatManyHoldWhatWasCommittedBefore(t *testing.T) {
	f := healthy(t)
	f.cluster.Spec.MinSyncReplicas = 2
	primary := f.reports["c1-1"]
	primary.MySQL.SemiSync.WaitFor = 2
	step := func(what string, effective int32, waits bool) {
		t.Helper()
		d := decide(f)
		if d.status.Effective != effective || (d.raising != nil) != waits {
			t.Fatalf("%s: effective %d, waits %v", what, d.status.Effective, d.raising != nil)
		}
		f.raising, f.cluster.Status.SemiSync = d.raising, d.status
	}
	step("first seen", 1, true)
	step("the same report again", 1, true)
	primary.Sequence, primary.MySQL.Executed = 11, set(t, "1-120")
	step("nobody holds it yet", 1, true)
	f.reports["c1-2"].MySQL.Replication.Received = set(t, "91-130")
	primary.Sequence, primary.MySQL.Executed = 12, set(t, "1-200")
	step("one holds it", 1, true)
	f.reports["c1-3"].MySQL.Replication.Received = set(t, "91-119")
	step("the other holds nearly all of it", 1, true)
	f.reports["c1-3"].MySQL.Replication.Received = set(t, "91-120")
	step("both hold what was committed at that moment", 2, false)
	step("later", 2, false)
}

func TestRaiseBeginsAnewWithAnotherPrimary(t *testing.T) {
	f := healthy(t)
	f.cluster.Spec.MinSyncReplicas = 2
	f.reports["c1-1"].MySQL.SemiSync.WaitFor = 2
	f.raising = &raise{generation: 2, boot: "b1", waitFor: 2, read: true}
	if d := decide(f); d.status.Effective != 1 || d.raising == nil || d.raising.generation != 3 || d.raising.read {
		t.Errorf("a raise of another generation was taken for this one: %+v", d.raising)
	}
	f.raising = &raise{generation: 3, boot: "b0", waitFor: 2, read: true}
	if d := decide(f); d.status.Effective != 1 {
		t.Error("a raise of another server process was taken for this one")
	}
}

// Where the end of a clone and commits wait for one another, the commits are let go after some time.
func TestCommitsThatKeepAReplicaFromBeingClonedAreLetGo(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	waits := func() facts {
		f := healthy(t)
		delete(f.reports, "c1-2")
		delete(f.reports, "c1-3")
		f.reports["c1-1"].MySQL.SemiSync = protocol.SemiSync{SourceEnabled: true, SourceActive: true, WaitFor: 1, Waiting: 3}
		f.cloning, f.now = []string{"c1-3"}, begin
		return f
	}
	f := waits()
	d := decide(f)
	if d.settings != nil || !d.stuck.Equal(begin) || !d.waits {
		t.Errorf("at once: %+v, stuck since %s, waits %t", d.settings, d.stuck, d.waits)
	}
	f.memory, f.now = d.memory, begin.Add(letGoAfter)
	d = decide(f)
	if want := (protocol.SemiSyncSettings{WaitFor: 1, Generation: 3, LetGo: true}); d.settings == nil || *d.settings != want || !slices.Equal(d.cloning, f.cloning) {
		t.Errorf("after some time: %+v for %v", d.settings, d.cloning)
	}
	f.memory, f.now = d.memory, f.now.Add(time.Second)
	if d = decide(f); d.settings != nil {
		t.Errorf("again, a second later: %+v", d.settings)
	}
	for name, given := range map[string]func(*facts){
		"nobody is cloned":                   func(f *facts) { f.cloning = nil },
		"no commit waits":                    func(f *facts) { f.reports["c1-1"].MySQL.SemiSync.Waiting = 0 },
		"they can be acknowledged":           func(f *facts) { f.reports["c1-1"].MySQL.SemiSync.Clients = 1 },
		"the volume has no room":             func(f *facts) { f.reports["c1-1"].Volumes = []protocol.Volume{{Name: "data", ReadOnly: true}} },
		"another count is asked for":         func(f *facts) { f.reports["c1-1"].MySQL.SemiSync.WaitFor = 2 },
		"they have not waited for long":      func(f *facts) { f.stuck = begin.Add(-letGoAfter + time.Second) },
		"semi-sync is not asked for":         func(f *facts) { f.cluster.Spec.MySQL.SemiSync.Enabled = false },
		"the primary is not heard":           func(f *facts) { delete(f.reports, "c1-1") },
		"it is another generation's primary": func(f *facts) { f.reports["c1-1"].Role.Generation = 2 },
	} {
		f := waits()
		f.stuck = begin.Add(-time.Hour)
		given(&f)
		if d := decide(f); d.settings != nil && d.settings.LetGo {
			t.Errorf("%s: %+v", name, d.settings)
		}
	}
	f = waits()
	f.stuck = begin.Add(-time.Hour)
	f.reports["c1-1"].MySQL.SemiSync.Waiting = 0
	if d := decide(f); !d.stuck.IsZero() || !d.waits {
		t.Errorf("when none waits any more: stuck since %s, waits %t", d.stuck, d.waits)
	}
	// A replica that is gone counts as connected for as long as nobody has noticed.
	f = waits()
	f.stuck = begin.Add(-time.Hour)
	f.reports["c1-1"].MySQL.SemiSync.Clients = 1
	f.reports["c1-1"].Heartbeat = &protocol.Heartbeat{WaitingMillis: letGoAfter.Milliseconds()}
	if d := decide(f); d.settings == nil || !d.settings.LetGo {
		t.Errorf("a stamp waits: %+v", d.settings)
	}
}
