package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

// now is the operator's clock in every case.
var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// uuids of the servers of c1-1, c1-2 and c1-3.
var uuids = []string{
	"aaaaaaaa-0000-4000-8000-000000000001",
	"aaaaaaaa-0000-4000-8000-000000000002",
	"aaaaaaaa-0000-4000-8000-000000000003",
}

// set reads "1:1-100" as transactions 1 to 100 of the server of c1-1; several are separated by a comma.
func set(text string) gtid.Set {
	var parts []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, uuids[part[0]-'1']+part[1:])
		}
	}
	s, err := gtid.Parse(strings.Join(parts, ","))
	if err != nil {
		panic(err)
	}
	return s
}

// world is a snapshot with the steps that cases take.
type world struct{ Snapshot }

// sound is a complete Cluster of three: c1-1 is the primary in generation 3, the others replicate from it.
func sound() *world {
	c := &api.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1", UID: "uid-of-c1", Generation: 2}}
	c.Spec.Instances = 3
	c.Default()
	at := metav1.NewTime(now.Add(-time.Hour))
	c.Status = api.ClusterStatus{
		CurrentPrimary: "c1-1", TargetPrimary: "c1-1", CurrentPrimaryGeneration: 3, CurrentPrimaryServerUUID: uuids[0],
		PromotionGTIDExecuted: set("1:1-50").String(), EstablishedAt: &at,
		InstanceNames: []string{"c1-1", "c1-2", "c1-3"}, LatestGeneratedNode: 3,
		GTIDExecutedByInstance: map[string]string{},
	}
	for _, name := range c.Status.InstanceNames {
		c.Status.GTIDExecutedByInstance[name] = set("1:1-100").String()
	}
	recorded := metav1.NewTime(now.Add(-time.Second))
	c.Status.GTIDExecutedUpdatedAt = &recorded
	w := &world{Snapshot{Now: now, NewAttempt: "attempt-new", Cluster: c, Fresh: false,
		Lease: Lease{Known: true, Holder: "c1-1/pod-1", Unchanged: 2 * time.Second}}}
	for n := range 3 {
		w.add(n + 1)
	}
	w.settled()
	return w
}

// add makes a running instance: the primary if the status says so, else its replica.
func (w *world) add(n int) *Instance {
	i := Instance{
		Name: w.Cluster.InstanceName(int32(n)), Ordinal: int32(n), CertificateReady: true, Asked: true, Age: 100 * time.Millisecond,
		Pod: &Pod{UID: fmt.Sprintf("pod-%d", n), Ready: true, Running: true, Role: api.RoleReplica, Routable: true},
	}
	i.Volumes = []Volume{{Name: i.Name}}
	i.Report = &protocol.Report{
		Instance: i.Name, PodUID: i.Pod.UID, Server: protocol.Server{State: protocol.ServerRunning},
		Role: protocol.Role{Name: "replica", Generation: w.Cluster.Status.CurrentPrimaryGeneration},
		MySQL: &protocol.MySQL{ServerUUID: uuids[n-1], ReadOnly: true, SuperReadOnly: true, Executed: set("1:1-100"), Replication: &protocol.Replication{
			SourceHost: w.Cluster.InstanceHost(w.Cluster.Status.CurrentPrimary), SourceUUID: uuids[0],
			IORunning: true, Connected: true, SQLRunning: true, Received: set("1:90-100"), HeartbeatAgeMillis: 500, SecondsBehind: new(int64(0)),
		}},
	}
	if i.Name == w.Cluster.Status.CurrentPrimary {
		i.Pod.Role = api.RolePrimary
		i.Report.Role.Name, i.Report.Lease.Held = "primary", true
		i.Report.MySQL.ReadOnly, i.Report.MySQL.SuperReadOnly, i.Report.MySQL.Replication = false, false, nil
	}
	w.Instances = append(w.Instances, i)
	return &w.Instances[len(w.Instances)-1]
}

// settled takes over what a first pass writes down, so that a case shows its own changes only.
func (w *world) settled() { w.Cluster.Status = Decide(w.Snapshot).Status }

func (w *world) i(n int) *Instance { return w.instance(w.Cluster.InstanceName(int32(n))) }

// held sets what a replica has executed, and what it has received of its source.
func (w *world) held(n int, executed, received string) *world {
	m := w.i(n).Report.MySQL
	m.Executed = set(executed)
	if m.Replication != nil {
		m.Replication.Received = set(received)
	}
	return w
}

// crash ends an instance's server; its manager says so and gives the lease back.
func (w *world) crash(n int) *world {
	i := w.i(n)
	i.Report.Server = protocol.Server{State: protocol.ServerDown, LastExit: "killed by signal 9"}
	i.Report.MySQL = nil
	if w.Lease.HeldBy(i.Name) {
		w.Lease.Holder = ""
	}
	w.cutOff(i.Name)
	return w
}

// cutOff makes the replicas of an instance lose their source.
func (w *world) cutOff(source string) {
	for n := range w.Instances {
		if i := &w.Instances[n]; i.source() == source {
			i.Report.MySQL.Replication.Connected = false
			i.Report.MySQL.Replication.HeartbeatAgeMillis = 60_000
		}
	}
}

// silence makes an instance answer nobody; its replicas hear nothing either.
func (w *world) silence(n int) *world {
	w.i(n).Report = nil
	w.cutOff(w.i(n).Name)
	return w
}

// lose removes an instance's Pod.
func (w *world) lose(n int) *world {
	i := w.i(n)
	i.Pod, i.Report, i.Asked = nil, nil, false
	w.cutOff(i.Name)
	return w
}

// free makes the lease have expired, and the reports be read after that.
func (w *world) free() *world {
	if w.Lease.Holder != "" {
		w.Lease.Unchanged = api.PrimaryLeaseTTL
	}
	w.Fresh = true
	return w
}

// deadPrimary is a Cluster whose primary's server is down and about to be replaced.
func deadPrimary() *world { return sound().crash(1).free() }

// moving is a Cluster in the middle of a switchover from c1-1 to c1-2: asked for and not yet answered.
func moving() *world {
	w := sound()
	w.transition(api.TransitionSwitchover, "c1-2")
	return w
}

func (w *world) transition(kind api.TransitionKind, to string) {
	deadline := metav1.NewMicroTime(now.Add(time.Hour))
	w.Cluster.Status.TargetPrimary = to
	w.Cluster.Status.PrimaryTransition = &api.PrimaryTransition{
		Attempt: "attempt-1", Kind: kind, From: "c1-1", To: to, Generation: 4, StartedAt: metav1.NewMicroTime(now.Add(-time.Second)),
	}
	if kind == api.TransitionSwitchover {
		w.Cluster.Status.PrimaryTransition.Deadline = &deadline
	}
	for n := range w.Instances {
		if w.Instances[n].Name == "c1-1" && w.Instances[n].Pod != nil {
			w.Instances[n].Pod.Role, w.Instances[n].Pod.Routable = "", false
		}
	}
}

// stepDown makes c1-1 read-only, with what it had executed on the lease.
func (w *world) stepDown(handoff string) *world {
	w.i(1).Report.MySQL.ReadOnly, w.i(1).Report.MySQL.SuperReadOnly = true, true
	s := set(handoff)
	w.Lease = Lease{Known: true, Unchanged: time.Second, Handoff: &s, HandoffAttempt: "attempt-1"}
	return w
}

// claimed makes c1-2 the primary of the next generation, as its manager does.
func (w *world) claimed() *world {
	st := &w.Cluster.Status
	st.CurrentPrimary, st.CurrentPrimaryGeneration, st.CurrentPrimaryServerUUID = "c1-2", 4, uuids[1]
	st.PromotionGTIDExecuted = set("1:1-100").String()
	w.Lease = Lease{Known: true, Holder: "c1-2/pod-2", Unchanged: time.Second}
	return w
}

// opened makes c1-2 writable.
func (w *world) opened() *world {
	r := w.i(2).Report
	r.Role.Generation, r.Role.Name = 4, "primary"
	r.MySQL.ReadOnly, r.MySQL.SuperReadOnly, r.MySQL.Replication = false, false, nil
	return w
}

// annotate sets annotations of the Cluster, and removes those without a value.
func (w *world) annotate(values map[string]*string) {
	next := maps.Clone(w.Cluster.Annotations)
	if next == nil {
		next = map[string]string{}
	}
	for key, value := range values {
		if delete(next, key); value != nil {
			next[key] = *value
		}
	}
	w.Cluster.Annotations = next
}

// then applies a decision's status and its actions to the world.
func (w *world) then(d Decision) *world {
	d.Status.DeepCopyInto(&w.Cluster.Status)
	for _, a := range slices.Concat(d.First, d.Actions) {
		if a.Kind == RecordFailover {
			w.annotate(a.Record.Annotations())
			continue
		}
		if a.Kind == ClearAcceptLoss {
			w.annotate(map[string]*string{api.AnnotationAcceptLoss: nil})
			continue
		}
		i := w.instance(a.Instance)
		if i == nil {
			ordinal, _ := w.Cluster.InstanceOrdinal(a.Instance)
			w.Instances = append(w.Instances, Instance{Name: a.Instance, Ordinal: ordinal, CertificateReady: true})
			i = &w.Instances[len(w.Instances)-1]
		}
		switch a.Kind {
		case CreateVolumes:
			i.Volumes, i.MissingVolumes = []Volume{{Name: i.Name}}, nil
		case CreatePod:
			i.Pod = &Pod{UID: "new-" + i.Name}
		case DeletePod:
			i.Pod.Terminating = true
		case LabelPod:
			i.Pod.Role, i.Pod.Routable = a.Role, a.Routable
		}
	}
	return w
}

// actions are a decision's actions in short.
func actions(d Decision) []string {
	var all []string
	for _, a := range slices.Concat(d.First, d.Actions) {
		text := string(a.Kind) + " " + a.Instance
		if a.Kind == LabelPod {
			text += fmt.Sprintf(" %q %t", a.Role, a.Routable)
		}
		all = append(all, text)
	}
	return all
}

func events(d Decision) []string {
	var all []string
	for _, e := range d.Events {
		all = append(all, e.Reason+": "+e.Message)
	}
	for _, a := range slices.Concat(d.First, d.Actions) {
		if a.Done != nil {
			all = append(all, a.Done.Reason+": "+a.Done.Message)
		}
	}
	return all
}

func does(t *testing.T, d Decision, want ...string) {
	t.Helper()
	if got := actions(d); !slices.Equal(got, want) {
		t.Errorf("actions %q, want %q", got, want)
	}
}

func says(t *testing.T, d Decision, want string) {
	t.Helper()
	all := d.Rule + "\n" + string(d.Status.Phase) + ": " + d.Status.PhaseReason + "\n" + strings.Join(events(d), "\n")
	if !strings.Contains(all, want) {
		t.Errorf("nothing says %q:\n%s", want, all)
	}
}

// condition is one of a decision's conditions.
func condition(d Decision, kind string) metav1.Condition {
	if c := meta.FindStatusCondition(d.Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}
