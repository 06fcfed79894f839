package suite

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/e2e/framework"
)

// wrong is an input that cannot work, and what makes it right.
type wrong struct {
	name  string
	spoil func(*api.Cluster)
	// before is what is wrong around the Cluster; nil for nothing.
	before func(t *testing.T, e *framework.Environment, key client.ObjectKey)
	// condition is the one that tells, event the reason of the event that does; both must name these words.
	condition, event string
	words            []string
	mend             func(t *testing.T, e *framework.Environment, key client.ObjectKey)
}

func patch(content string) func(*testing.T, *framework.Environment, client.ObjectKey) {
	return func(t *testing.T, e *framework.Environment, key client.ObjectKey) {
		t.Helper()
		_, err := e.Kubectl(t.Context(), "-n", key.Namespace, "patch", "mysql", key.Name, "--type=merge", "-p", content)
		must(t, err)
	}
}

// wrongAroundTheInstance keeps a first instance from being made, in the order in which it is met.
func wrongAroundTheInstance() []wrong {
	return []wrong{
		{
			name:      "managed",
			spoil:     func(c *api.Cluster) { c.Spec.MySQL.Parameters["Gtid-Mode"] = "OFF" },
			condition: api.ConditionSpecValid, event: api.EventInvalidSpec,
			words: []string{"spec.mysql.parameters", "Gtid-Mode"},
			mend:  patch(`{"spec":{"mysql":{"parameters":{"Gtid-Mode":null}}}}`),
		},
		{
			name:      "secret",
			spoil:     func(c *api.Cluster) { c.Spec.RootPasswordSecret = &corev1.LocalObjectReference{Name: "mine"} },
			condition: api.ConditionCredentialsReady, event: api.EventCredentialsIncomplete,
			words: []string{"mine"},
			mend: func(t *testing.T, e *framework.Environment, key client.ObjectKey) {
				t.Helper()
				must(t, e.Client.Create(t.Context(), &corev1.Secret{
					ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "mine"}, StringData: map[string]string{"password": "correct-horse-1A!"},
				}))
			},
		},
		{
			name:  "foreign",
			spoil: func(*api.Cluster) {},
			before: func(t *testing.T, e *framework.Environment, key client.ObjectKey) {
				t.Helper()
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name + "-1"}}
				claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
				claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
				must(t, e.Client.Create(t.Context(), claim))
			},
			condition: api.ConditionReady, event: api.EventForeignObject,
			words: []string{"PersistentVolumeClaim around-1", "does not belong to this Cluster", "delete or rename it"},
			mend: func(t *testing.T, e *framework.Environment, key client.ObjectKey) {
				t.Helper()
				_, err := e.Kubectl(t.Context(), "-n", key.Namespace, "delete", "pvc", key.Name+"-1")
				must(t, err)
			},
		},
		{
			name:      "class",
			spoil:     func(c *api.Cluster) { c.Spec.Storage.StorageClass = new("e2e-no-such-class") },
			condition: api.ConditionReady, event: api.EventProvisioningFailed,
			words: []string{"around-1", "e2e-no-such-class", "spec.storage.storageClass", "create that class"},
			mend: func(t *testing.T, e *framework.Environment, _ client.ObjectKey) {
				t.Helper()
				mode := storagev1.VolumeBindingWaitForFirstConsumer
				class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "e2e-no-such-class"}, Provisioner: "rancher.io/local-path", VolumeBindingMode: &mode}
				must(t, e.Client.Create(t.Context(), class))
				t.Cleanup(func() {
					_, _ = e.Kubectl(context.Background(), "delete", "storageclass", class.Name, "--ignore-not-found")
				})
			},
		},
		{
			name:      "priority",
			spoil:     func(c *api.Cluster) { c.Spec.PriorityClassName = "e2e-no-such-priority" },
			condition: api.ConditionReady, event: api.EventProvisioningFailed,
			words: []string{"around-1", "refuses to create its Pod", "e2e-no-such-priority", "spec.priorityClassName"},
			mend:  patch(`{"spec":{"priorityClassName":null}}`),
		},
	}
}

// wrongInsideTheInstance keeps one from running, in the order in which it is met.
func wrongInsideTheInstance() []wrong {
	return []wrong{
		{
			name:      "scheduler",
			spoil:     func(c *api.Cluster) { c.Spec.SchedulerName = "e2e-nobody" },
			condition: api.ConditionReady, event: api.EventProvisioningFailed,
			words: []string{"inside-1", "e2e-nobody", "spec.schedulerName", "kubectl describe pod"},
			mend:  patch(`{"spec":{"schedulerName":null}}`),
		},
		{
			name:      "image",
			spoil:     func(c *api.Cluster) { c.Spec.ImageName = "nowhere.invalid/mysql:9.7" },
			condition: api.ConditionReady, event: api.EventProvisioningFailed,
			words: []string{"inside-1", "nowhere.invalid/mysql:9.7", "correct spec.imageName"},
			mend:  patch(`{"spec":{"imageName":"mysql:9.7"}}`),
		},
		{
			name: "settings",
			spoil: func(c *api.Cluster) {
				c.Spec.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "e2e-settings"}}}}
			},
			condition: api.ConditionReady, event: api.EventProvisioningFailed,
			words: []string{"inside-1", "e2e-settings", "spec.envFrom"},
			mend: func(t *testing.T, e *framework.Environment, key client.ObjectKey) {
				t.Helper()
				must(t, e.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "e2e-settings"}}))
			},
		},
		{
			name:      "parameter",
			spoil:     func(c *api.Cluster) { c.Spec.MySQL.Parameters["no_such_variable"] = "1" },
			condition: api.ConditionReady, event: api.EventProvisioningFailed,
			words: []string{"inside-1", "no_such_variable", "correct spec.mysql.parameters"},
			mend:  patch(`{"spec":{"mysql":{"parameters":{"no_such_variable":null}}}}`),
		},
	}
}

// tells waits until a condition and an event name what is wrong.
func (w wrong) tells(t *testing.T, e *framework.Environment, key client.ObjectKey) {
	t.Helper()
	g := NewWithT(t)
	g.Eventually(func() string { return told(status(t, e, key), w.condition) }, "150s", "500ms").Should(And(contain(w.words)...))
	g.Eventually(func() []string { return strings.Split(events(t, e, key), "\n") }, "10s", "500ms").
		Should(ContainElement(And(append(contain(w.words), HavePrefix(w.event+": "))...)))
}

// A Cluster on which much is wrong is told one thing after the other, in a condition and in an event, and to correct
// what it says is enough to get on to the next.
func correctedStepByStep(name string, all []wrong) func(*testing.T) {
	return func(t *testing.T) {
		e := environment(t)
		c := newCluster(name, 1)
		for _, w := range all {
			w.spoil(c)
			if w.before != nil {
				w.before(t, e, client.ObjectKeyFromObject(c))
			}
		}
		key := create(t, e, c)
		for _, w := range all {
			if !t.Run(w.name, func(t *testing.T) {
				w.tells(t, e, key)
				comesToRest(t, e, key, 3*time.Second)
			}) {
				return
			}
			w.mend(t, e, key)
		}
		ready(t, e, key)
	}
}

// A storage class whose provisioner nobody runs is named with it. Its claim cannot be given another class, so
// that there is nothing to correct but the Cluster.
func storageClassThatNobodyServesIsNamed(t *testing.T) {
	e := environment(t)
	mode := storagev1.VolumeBindingWaitForFirstConsumer
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "e2e-nobody"}, Provisioner: "nobody.example/disk", VolumeBindingMode: &mode}
	must(t, e.Client.Create(t.Context(), class))
	t.Cleanup(func() {
		_, _ = e.Kubectl(context.Background(), "delete", "storageclass", class.Name, "--ignore-not-found")
	})
	c := newCluster("wrong-provisioner", 1)
	c.Spec.Storage.StorageClass = new(class.Name)
	w := wrong{condition: api.ConditionReady, event: api.EventProvisioningFailed, words: []string{"volume claim wrong-provisioner-1", class.Name, class.Provisioner}}
	w.tells(t, e, create(t, e, c))
}

// told is what a condition that is not True says.
func told(c *api.Cluster, kind string) string {
	condition := meta.FindStatusCondition(c.Status.Conditions, kind)
	if condition == nil || condition.Status == metav1.ConditionTrue {
		return ""
	}
	return condition.Reason + ": " + condition.Message
}

func contain(words []string) (list []types.GomegaMatcher) {
	for _, w := range words {
		list = append(list, ContainSubstring(w))
	}
	return list
}

// What the API server can refuse, it refuses: the names of fields are in the answer.
func TestTheAPIServerRefusesWhatCannotWork(t *testing.T) {
	e := environment(t)
	for want, spoil := range map[string]func(*api.Cluster){
		"at most 46 characters":   func(c *api.Cluster) { c.Name = strings.Repeat("x", 47) },
		"no dots":                 func(c *api.Cluster) { c.Name = "a.b" },
		"a lower-case letter":     func(c *api.Cluster) { c.Name = "1abc" },
		"spec.instances":          func(c *api.Cluster) { c.Spec.Instances = 0 },
		"minSyncReplicas must be": func(c *api.Cluster) { c.Spec.MinSyncReplicas = 3; c.Spec.Instances = 3 },
		"this name is the server's": func(c *api.Cluster) {
			c.Spec.Bootstrap = &api.BootstrapConfiguration{InitDB: &api.InitDBConfiguration{Database: "mysql"}}
		},
		"three intervals of the heartbeat": func(c *api.Cluster) { c.Spec.Replication.MaxReadyLag = &metav1.Duration{Duration: time.Second} },
		"Duplicate value": func(c *api.Cluster) {
			twice := []api.ManagedService{{Name: "a", SelectorType: api.ServiceRW}, {Name: "a", SelectorType: api.ServiceRO}}
			c.Spec.Managed = &api.ManagedConfiguration{Services: &api.ManagedServices{Additional: twice}}
		},
		"size must be above zero": func(c *api.Cluster) { c.Spec.Storage.Size.Set(0) },
		"CNMSQL_ or MYSQL":        func(c *api.Cluster) { c.Spec.Env = []corev1.EnvVar{{Name: "CNMSQL_CLUSTER", Value: "x"}} },
	} {
		c := newCluster("refused", 1)
		spoil(c)
		err := e.Client.Create(t.Context(), c, client.DryRunAll)
		NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
	}
	longest := newCluster(strings.Repeat("x", 46), 1)
	must(t, e.Client.Create(t.Context(), longest, client.DryRunAll))
}

// The generation of the primary cannot be set to anything by anybody.
func TestTheStatusKeepsItsRules(t *testing.T) {
	e, key := shared(t)
	for name, content := range map[string]string{
		"two generations at once":         `{"status":{"currentPrimaryGeneration":99}}`,
		"a primary without a generation":  `{"status":{"currentPrimary":"c1-9"}}`,
		"a generation that is taken back": `{"status":{"currentPrimaryGeneration":null}}`,
	} {
		_, err := e.Kubectl(t.Context(), "-n", key.Namespace, "patch", "mysql", key.Name, "--subresource=status", "--type=merge", "-p", content)
		if err == nil || !strings.Contains(err.Error(), "currentPrimary") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
