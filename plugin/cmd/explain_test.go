package cmd

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/plugin/control"
	"cnmsql.co/operator/plugin/view"
)

const sourceA = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

// live is a healthy Cluster of three with its objects, seen by a person who may only read.
type live struct {
	t       *testing.T
	cluster *api.Cluster
	client  client.WithWatch
	reports map[string]*protocol.Report
	// forbidden are kinds that the person may not read.
	forbidden []string
	in        string
	// meanwhile happens while an instance is asked.
	meanwhile func()
}

func newLive(t *testing.T) *live {
	t.Helper()
	c := cluster("a", "c1")
	c.Status.CurrentPrimaryServerUUID, c.Status.InstanceNames = sourceA, []string{"c1-1", "c1-2", "c1-3"}
	c.Status.GTIDExecutedByInstance = map[string]string{"c1-1": sourceA + ":1-100"}
	meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: api.ConditionCredentialsReady, Status: metav1.ConditionTrue, Reason: "Reconciled"})
	c.Spec.Storage.Size = resource.MustParse("1Gi")
	defaulted := c.DeepCopy()
	defaulted.Default()
	l := &live{t: t, cluster: c, reports: map[string]*protocol.Report{}}
	all := []client.Object{c, objects.Lease(defaulted, "c1-1/pod-c1-1", time.Now())}
	for _, name := range []string{c.CASecretName(), c.ClientTLSSecretName(), c.ReplicationTLSSecretName()} {
		all = append(all, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}, Data: map[string][]byte{"tls.key": []byte("hunter2")}})
	}
	for _, name := range c.Status.InstanceNames {
		pod := objects.Pod(defaulted, name, objects.Options{OperatorImage: "op:1"})
		pod.UID, pod.Spec.NodeName = types.UID("pod-"+name), "node-"+name
		pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.ContainerMySQL, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		all = append(all, pod, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: api.ServerTLSSecretName(name)}}, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}})
		for _, claim := range objects.PVCs(defaulted, name) {
			claim.Status.Phase = corev1.ClaimBound
			all = append(all, claim)
		}
		l.reports[name] = l.report(name)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(api.AddToScheme(scheme), corev1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme), storagev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	l.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(all...).Build()
	return l
}

func (l *live) report(name string) *protocol.Report {
	executed, err := gtid.Parse(sourceA + ":1-100")
	if err != nil {
		l.t.Fatal(err)
	}
	r := &protocol.Report{Instance: name, PodUID: "pod-" + name, Server: protocol.Server{State: protocol.ServerRunning}, Role: protocol.Role{Generation: 1}, MySQL: &protocol.MySQL{ServerUUID: sourceA, Executed: executed}}
	if name != "c1-1" {
		r.MySQL.ReadOnly, r.MySQL.SuperReadOnly = true, true
		r.MySQL.Replication = &protocol.Replication{SourceHost: l.cluster.InstanceHost("c1-1"), IORunning: true, SQLRunning: true, Connected: true, SecondsBehind: new(int64(0)), HeartbeatAgeMillis: 100}
	}
	return r
}

// options let nobody write, and read nothing of a kind that is forbidden.
func (l *live) options(out, errs *bytes.Buffer) Options {
	refuse := func(o runtime.Object) error {
		kinds, _, _ := l.client.Scheme().ObjectKinds(o)
		kind := o.GetObjectKind().GroupVersionKind().Kind
		if len(kinds) > 0 {
			kind = kinds[0].Kind
		}
		for _, f := range l.forbidden {
			if strings.TrimSuffix(kind, "List") == f {
				return apierrors.NewForbidden(schema.GroupResource{Resource: f}, "", errors.New("not you"))
			}
		}
		return nil
	}
	wrote := func() error { l.t.Error("something was written"); return errors.New("read only") }
	funcs := interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			return errors.Join(refuse(o), c.Get(ctx, key, o, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, o client.ObjectList, opts ...client.ListOption) error {
			return errors.Join(refuse(o), c.List(ctx, o, opts...))
		},
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return wrote() },
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return wrote() },
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return wrote() },
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			return wrote()
		},
		Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
			return wrote()
		},
		DeleteAllOf: func(context.Context, client.WithWatch, client.Object, ...client.DeleteAllOfOption) error {
			return wrote()
		},
		SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
			return wrote()
		},
		SubResourceUpdate: func(context.Context, client.Client, string, client.Object, ...client.SubResourceUpdateOption) error {
			return wrote()
		},
	}
	return Options{
		Out: out, Err: errs, Now: time.Now, In: strings.NewReader(l.in),
		Connect: func() (client.WithWatch, string, error) { return interceptor.NewClient(l.client, funcs), "a", nil },
		Dial:    func() (control.Dialer, error) { return nil, nil },
		Ask: func(_ context.Context, _ control.Dialer, c control.Credentials, _ string, pod *corev1.Pod) (*protocol.Report, error) {
			if string(c.Key) != "hunter2" {
				l.t.Errorf("asked with the key %q", c.Key)
			}
			if l.meanwhile != nil {
				l.meanwhile()
			}
			if r := l.reports[pod.Name]; r != nil {
				return r, nil
			}
			return nil, errors.New("connection refused")
		},
	}
}

func (l *live) call(args ...string) (text, errs string, err error) {
	l.t.Helper()
	var out, warnings bytes.Buffer
	c := New(l.options(&out, &warnings))
	c.SetArgs(args)
	err = c.ExecuteContext(context.Background())
	return out.String(), warnings.String(), err
}

func (l *live) must(args ...string) string {
	l.t.Helper()
	out, errs, err := l.call(args...)
	if err != nil {
		l.t.Fatalf("%v: %v\n%s", args, err, errs)
	}
	return out
}

func (l *live) explained(args ...string) view.Explained {
	l.t.Helper()
	var e view.Explained
	if err := yaml.Unmarshal([]byte(l.must(append([]string{"explain", "-o", "yaml"}, args...)...)), &e); err != nil {
		l.t.Fatal(err)
	}
	return e
}

func TestExplainTellsTheRuleAndTheSuccessorOfALiveClusterAndOnlyReads(t *testing.T) {
	l := newLive(t)
	text := l.must("explain", "c1")
	for _, want := range []string{"the primary is healthy", "What if c1-1 died now", "rule 7, the primary has failed", "c1-2       yes       0        is chosen"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if e := l.explained(); e.Decision.Rule != "the primary is healthy" || e.WithoutPrimary[0].Outcome.Winner != "c1-2" || e.Decision.Winner != "" || len(e.Notes) != 0 {
		t.Errorf("%+v", e)
	}
}

func TestInstanceThatDoesNotAnswerIsSilentToExplainAsToTheOperator(t *testing.T) {
	l := newLive(t)
	l.reports["c1-3"] = nil
	e := l.explained("c1")
	if i := e.Instances[2]; i.Answers != "does not answer" || i.Switchover != "its instance manager does not answer" {
		t.Errorf("%+v", i)
	}
	if len(e.Notes) != 1 || !strings.Contains(e.Notes[0], "c1-3 was asked in vain: connection refused") {
		t.Errorf("notes %v", e.Notes)
	}
}

func TestWhatAPersonMayNotReadIsNotedAndNeverHeldAgainstAnInstance(t *testing.T) {
	l := newLive(t)
	l.forbidden = []string{"Secret", "Node"}
	e := l.explained("c1")
	if i := e.Instances[1]; i.Answers != "was not asked" || i.Switchover != "not known" {
		t.Errorf("%+v", i)
	}
	if len(e.WithoutPrimary) > 0 || len(e.NotAsked) != 2 {
		t.Errorf("it tells what instances would do that were not asked: %+v", e.WithoutPrimary)
	}
	if e.Decision.Rule != "the primary cannot be reached" {
		t.Errorf("%+v", e.Decision)
	}
	notes := strings.Join(e.Notes, "\n")
	for _, want := range []string{"you may not read nodes", "taken to be there", "no instance was asked"} {
		if !strings.Contains(notes, want) {
			t.Errorf("%q is missing in %q", want, notes)
		}
	}
}

func TestPodsAndVolumeClaimsAreNeededForAnExplanation(t *testing.T) {
	for _, kind := range []string{"Pod", "PersistentVolumeClaim", "Lease"} {
		l := newLive(t)
		l.forbidden = []string{kind}
		if _, _, err := l.call("explain", "c1"); !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// The primary's server and manager are gone, and nobody renews the Lease. Time passes in a bubble.
func TestLeaseIsWatchedForItsWholeTimeBeforeItCountsAsExpired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t)
		l.silence("c1-1")
		from := time.Now()
		e := l.explained("c1")
		if waited := time.Since(from); waited < api.PrimaryLeaseTTL || waited > api.PrimaryLeaseTTL+2*leaseTurns {
			t.Errorf("watched for %s", waited)
		}
		if !strings.HasPrefix(e.Lease, "expired") || e.Decision.Winner != "c1-2" {
			t.Errorf("%q, %+v", e.Lease, e.Decision)
		}
	})
}

func TestLeaseThatIsRenewedIsNotWatchedFurther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLive(t)
		l.silence("c1-1")
		go func() {
			time.Sleep(4500 * time.Millisecond)
			l.renew()
		}()
		from := time.Now()
		e := l.explained("c1")
		if waited := time.Since(from); waited != 5*time.Second || !strings.HasPrefix(e.Lease, "held by c1-1") {
			t.Errorf("watched for %s: %q", waited, e.Lease)
		}
		if e.Decision.Winner != "" || e.WithoutPrimary[0].Outcome.Winner != "c1-2" {
			t.Errorf("%+v", e)
		}
	})
}

// renew is what the holder of the Lease does.
func (l *live) renew() {
	lease := &coordinationv1.Lease{}
	if err := l.client.Get(context.Background(), client.ObjectKey{Namespace: "a", Name: "c1-primary"}, lease); err != nil {
		l.t.Error(err)
	}
	lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Now()}
	if err := l.client.Update(context.Background(), lease); err != nil {
		l.t.Error(err)
	}
}

func TestInstancesAreAskedAnewWhenTheLeaseChangedMeanwhile(t *testing.T) {
	l := newLive(t)
	var once sync.Once
	l.meanwhile = func() { once.Do(l.renew) }
	if dump := l.must("debug", "snapshot", "c1"); !strings.Contains(dump, "\nfresh: true\n") {
		t.Errorf("what was asked before the Lease changed is taken for fresh, or not asked again:\n%s", dump)
	}
	// Without a Lease nothing is as fresh as an election needs it.
	if err := l.client.Delete(context.Background(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "c1-primary"}}); err != nil {
		t.Fatal(err)
	}
	if dump := l.must("debug", "snapshot", "c1"); !strings.Contains(dump, "\nfresh: false\n") {
		t.Errorf("fresh without a Lease:\n%s", dump)
	}
}

// silence is a machine that says nothing any more.
func (l *live) silence(name string) {
	l.t.Helper()
	l.reports[name] = nil
	for n := range l.reports {
		if r := l.reports[n]; r != nil && r.MySQL.Replication != nil {
			r.MySQL.Replication.Connected, r.MySQL.Replication.HeartbeatAgeMillis = false, 60_000
		}
	}
	pod := &corev1.Pod{}
	if err := l.client.Get(context.Background(), client.ObjectKey{Namespace: "a", Name: name}, pod); err != nil {
		l.t.Fatal(err)
	}
	pod.Status.Conditions[0].Status = corev1.ConditionFalse
	if err := l.client.Update(context.Background(), pod); err != nil {
		l.t.Fatal(err)
	}
}

func TestSnapshotOfALiveClusterIsExplainedAsTheClusterItself(t *testing.T) {
	l := newLive(t)
	for _, output := range []string{"yaml", "json"} {
		dump := l.must("debug", "snapshot", "c1", "-o", output)
		if strings.Contains(dump, "hunter2") {
			t.Errorf("a secret is in:\n%s", dump)
		}
		l.in = dump
		if e := l.explained("-f", "-"); e.Decision.Rule != "the primary is healthy" || e.WithoutPrimary[0].Outcome.Winner != "c1-2" || e.Cluster != "a/c1" {
			t.Errorf("%s: %+v", output, e)
		}
		file := filepath.Join(t.TempDir(), "snapshot")
		if err := os.WriteFile(file, []byte(dump), 0o600); err != nil {
			t.Fatal(err)
		}
		if text := l.must("explain", "--file", file); !strings.Contains(text, "the primary is healthy") {
			t.Errorf("%s:\n%s", output, text)
		}
	}
}

func TestExplainRefusesWhatItCannotRead(t *testing.T) {
	l := newLive(t)
	l.in = "cluster: {metadata: {name: c1}}\nnow: 2030-01-01T00:00:00Z\ncluster: {}\n"
	for says, args := range map[string][]string{
		"already set":                   {"explain", "-f", "-"},
		"no such file":                  {"explain", "-f", "/nowhere/at/all"},
		"either CLUSTER or --file":      {"explain", "c1", "-f", "-"},
		"it may be json or yaml":        {"explain", "c1", "-o", "wide"},
		`there is no Cluster "c9" in`:   {"explain", "c9"},
		`there is no Cluster "c8" in`:   {"debug", "snapshot", "c8"},
		"--output is \"\"; it may be j": {"debug", "snapshot", "c1", "-o", ""},
	} {
		if _, _, err := l.call(args...); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v, want %q", args, err, says)
		}
	}
}
