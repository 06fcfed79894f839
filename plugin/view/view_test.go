package view

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "cnmsql.co/operator/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	sourceA = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	sourceB = "4d22aa10-0000-11ee-be56-0242ac120002"
)

func ago(d time.Duration) metav1.Time           { return metav1.NewTime(now.Add(-d)) }
func microAgo(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(now.Add(-d)) }

func healthy() Input {
	since, promoted, recorded := ago(5*time.Minute), microAgo(5*time.Minute), ago(20*time.Second)
	c := &api.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "c1", Generation: 2},
		Spec: api.ClusterSpec{
			Instances: 3, MinSyncReplicas: 1,
			MySQL: api.MySQLConfiguration{SemiSync: &api.SemiSyncConfiguration{Enabled: true}},
		},
		Status: api.ClusterStatus{
			ObservedGeneration: 2, Phase: api.PhaseReady,
			InstanceNames:  []string{"c1-1", "c1-2", "c1-3"},
			CurrentPrimary: "c1-1", TargetPrimary: "c1-1", CurrentPrimaryGeneration: 1, CurrentPrimaryTimestamp: &promoted,
			PrimaryLease: &api.PrimaryLeaseStatus{Holder: "c1-1/uid-c1-1", Since: &since},
			SemiSync:     &api.SemiSyncStatus{Configured: 1, Effective: 1, Active: true, Ackers: []string{"c1-2", "c1-3"}},
			GTIDExecutedByInstance: map[string]string{
				"c1-1": sourceA + ":1-100", "c1-2": sourceA + ":1-100", "c1-3": sourceA + ":1-97",
			},
			GTIDExecutedUpdatedAt:    &recorded,
			ReplicationLagByInstance: map[string]int64{"c1-2": 0, "c1-3": 90_000},
			Conditions: []metav1.Condition{
				{Type: api.ConditionReady, Status: metav1.ConditionTrue, Reason: api.ReasonHealthy, Message: "a writable primary and every replica are ready", LastTransitionTime: since},
				{Type: api.ConditionDegraded, Status: metav1.ConditionFalse, Reason: api.ReasonHealthy, Message: "nothing is missing", LastTransitionTime: since},
			},
		},
	}
	return Input{Cluster: c, Pods: []corev1.Pod{
		pod("c1-1", api.RolePrimary), pod("c1-2", api.RoleReplica), pod("c1-3", api.RoleReplica),
	}}
}

func pod(name, role string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "demo", UID: types.UID("uid-" + name), CreationTimestamp: ago(6 * time.Minute),
			Labels: map[string]string{api.LabelCluster: "c1", api.LabelInstance: name, api.LabelRole: role, api.LabelRoutable: "true"},
		},
		Spec: corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{
			Phase:      corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// failingOver is a dead primary, a chosen successor and a replica that diverged.
func failingOver() Input {
	in := healthy()
	st := &in.Cluster.Status
	failed, started, since := microAgo(8*time.Second), microAgo(2*time.Second), ago(8*time.Second)
	st.Phase, st.PhaseReason = api.PhaseFailingOver, "c1-2 is being promoted in place of c1-1"
	st.PrimaryFailingSince, st.TargetPrimary = &failed, "c1-2"
	st.PrimaryTransition = &api.PrimaryTransition{
		Attempt: "x", Kind: api.TransitionFailover, From: "c1-1", To: "c1-2", Generation: 2, StartedAt: started,
		Reason: "its server is down: signal: killed",
	}
	st.PrimaryLease = &api.PrimaryLeaseStatus{Holder: "", Since: &since}
	st.DivergedInstances = []string{"c1-3"}
	st.Divergence = []api.Divergence{{Instance: "c1-3", GTIDSet: sourceB + ":1-3", Count: 3}}
	st.Conditions[0].Status, st.Conditions[0].Reason, st.Conditions[0].Message = metav1.ConditionFalse, api.ReasonFailingOver, st.PhaseReason
	st.Conditions[0].LastTransitionTime = since
	delete(in.Pods[0].Labels, api.LabelRole)
	in.Pods[0].Status.Conditions[0].Status = corev1.ConditionFalse
	in.Pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 2}}
	in.Pods[2].Labels[api.LabelRoutable] = ""
	return in
}

// afterFailover is healthy again, in generation 2, with a Pod that is missing and one that cannot start.
func afterFailover() Input {
	in := healthy()
	st := &in.Cluster.Status
	promoted, stamped := microAgo(90*time.Second), ago(88*time.Second)
	st.Phase, st.PhaseReason = api.PhaseDegraded, "c1-1: the image cannot be pulled"
	st.CurrentPrimary, st.TargetPrimary, st.CurrentPrimaryGeneration, st.CurrentPrimaryTimestamp = "c1-2", "c1-2", 2, &promoted
	st.LastFailoverTimestamp, st.LastFailoverTarget = &stamped, "c1-2"
	st.LastElection = &api.Election{Winner: "c1-2", Verdict: "it holds everything that c1-3 holds"}
	st.PrimaryLease.Holder = "c1-2/uid-of-an-earlier-pod"
	st.SemiSync.Ackers = nil
	in.Pods = in.Pods[:2]
	in.Pods[0].Status.Phase = corev1.PodPending
	in.Pods[0].Labels[api.LabelRole] = ""
	in.Pods[0].Status.Conditions = nil
	in.Pods[0].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"},
	}}}
	in.Pods[1].Labels[api.LabelRole] = api.RolePrimary
	return in
}

func afterFence() Input {
	in := afterFailover()
	st := &in.Cluster.Status
	st.Phase, st.PhaseReason = api.PhaseDegraded, "c1-1 is fenced"
	st.LastFailoverTimestamp, st.LastFailoverTarget = nil, ""
	st.LastElection.At = ago(91 * time.Second)
	st.FencedInstances = []string{"c1-1"}
	in.Pods[0].Status.Phase = corev1.PodRunning
	in.Pods[0].Status.ContainerStatuses = nil
	return in
}

func nothingYet() Input {
	return Input{Cluster: &api.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: "c1", Generation: 1},
		Spec:       api.ClusterSpec{Instances: 1},
	}}
}

func podsForbidden() Input {
	in := healthy()
	in.Pods, in.PodsProblem = nil, "pods is forbidden"
	return in
}

func TestTextForPeople(t *testing.T) {
	for name, in := range map[string]Input{
		"healthy": healthy(), "failing-over": failingOver(), "after-failover": afterFailover(), "after-fence": afterFence(),
		"nothing-yet": nothingYet(), "pods-forbidden": podsForbidden(),
	} {
		t.Run(name, func(t *testing.T) {
			got := New(in).Text(now)
			path := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestMissingFactsAreNeverShownAsGood(t *testing.T) {
	s := New(podsForbidden())
	if s.Ready != nil {
		t.Errorf("%d instances are said to be ready although no Pod could be read", *s.Ready)
	}
	for _, i := range s.Instances {
		if i.Ready != nil || i.Role != unknown || i.Pod != unknown {
			t.Errorf("%s is shown as %s, %s", i.Name, i.Role, i.Pod)
		}
	}
	if s := New(nothingYet()); s.Phase != unknown || s.Lease.Known {
		t.Errorf("without a status the phase is %q, the lease %+v", s.Phase, s.Lease)
	}
}

func TestAnInstanceThatWasNotRecordedHasNoGap(t *testing.T) {
	in := healthy()
	delete(in.Cluster.Status.GTIDExecutedByInstance, "c1-3")
	if b := New(in).Instances[2].Behind; b != nil {
		t.Errorf("behind by %d, want unknown", *b)
	}
	in.Cluster.Status.GTIDExecutedByInstance["c1-3"] = "garbage"
	if b := New(in).Instances[2].Behind; b != nil {
		t.Errorf("behind by %d, want unknown", *b)
	}
}

func TestAPodThatIsBeingRemovedIsShown(t *testing.T) {
	in := healthy()
	in.Cluster.Status.InstanceNames = []string{"c1-1", "c1-2"}
	s := New(in)
	if len(s.Instances) != 3 || !strings.Contains(strings.Join(s.Instances[2].Trouble, ""), "being removed") {
		t.Errorf("instances: %+v", s.Instances)
	}
}

func TestJSONSaysFalseAndZeroAloud(t *testing.T) {
	in := healthy()
	in.Cluster.Status.SemiSync.Active = false
	in.Cluster.Status.SemiSync.Ackers = nil
	raw, err := json.Marshal(New(in))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"active":false`, `"ackers":[]`, `"transition":null`, `"restarts":0`, `"behind":3`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("no %s in %s", want, raw)
		}
	}
}

func TestTheInputIsNotChanged(t *testing.T) {
	in := healthy()
	before := in.Cluster.DeepCopy()
	New(in)
	if diff := cmp.Diff(before, in.Cluster); diff != "" {
		t.Error(diff)
	}
}
