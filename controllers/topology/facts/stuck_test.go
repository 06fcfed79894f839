package facts

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/objects"
)

// unstartedPod is a Pod that was made at start, with a container that has never run.
func unstartedPod(conditions ...corev1.PodCondition) *corev1.Pod {
	pod := aPod("c1-1")
	pod.CreationTimestamp = metav1.NewTime(start)
	pod.Spec.NodeName = "node-3"
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
	for _, c := range conditions {
		c.LastTransitionTime = metav1.NewTime(start)
		pod.Status.Conditions = append(pod.Status.Conditions, c)
	}
	return pod
}

func TestPodThatDoesNotStartSaysWhyAfterAWhile(t *testing.T) {
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}
	sandbox := func(is corev1.ConditionStatus) corev1.PodCondition {
		return corev1.PodCondition{Type: corev1.PodReadyToStartContainers, Status: is}
	}
	unscheduled := func(reason string) corev1.PodCondition {
		return corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: "nothing fits."}
	}
	own := unstartedPod()
	own.Spec.SchedulerName = "mine"
	for name, tc := range map[string]struct {
		pod          *corev1.Pod
		after        time.Duration
		says, reason string
	}{
		"no node":                      {unstartedPod(unscheduled(corev1.PodReasonUnschedulable)), unscheduledShown, "no node takes the Pod: nothing fits (see spec.resources", api.ReasonPodUnschedulable},
		"no node, for another reason":  {unstartedPod(unscheduled(corev1.PodReasonSchedulingGated)), unscheduledShown, "the Pod gets no node (SchedulingGated): nothing fits; see kubectl describe pod c1-1", api.ReasonPodUnschedulable},
		"a scheduler that nobody runs": {own, podPatience, "the scheduler mine has not taken up the Pod: run it, or correct spec.schedulerName", api.ReasonPodUnschedulable},
		"no scheduler":                 {unstartedPod(), podPatience, "no scheduler has taken up the Pod; see kubectl describe pod c1-1", api.ReasonPodUnschedulable},
		"a volume that is not mounted": {unstartedPod(scheduled, sandbox(corev1.ConditionFalse)), podPatience, "the node node-3 has not made the Pod's volumes or its network ready; see kubectl describe pod c1-1", api.ReasonServerDoesNotStart},
		"a node that says nothing":     {unstartedPod(scheduled), podPatience, "has not started on the node node-3; see kubectl describe pod c1-1", api.ReasonServerDoesNotStart},
		"an image that takes long":     {unstartedPod(scheduled, sandbox(corev1.ConditionTrue)), pullPatience, "still pulling an image", api.ReasonServerDoesNotStart},
	} {
		t.Run(name, func(t *testing.T) {
			early := &patience{now: start.Add(tc.after - time.Second)}
			if got := podFacts(tc.pod, "", early); got.Trouble != "" || early.again != time.Second {
				t.Errorf("a second too early: %q, looked at again after %s", got.Trouble, early.again)
			}
			if got := podFacts(tc.pod, "", &patience{now: start.Add(tc.after)}); !strings.Contains(got.Trouble, tc.says) || got.TroubleReason != tc.reason {
				t.Errorf("trouble %q, %q", got.Trouble, got.TroubleReason)
			}
		})
	}
}

func TestServerThatHasRunIsNotTakenForOneThatNeverStarts(t *testing.T) {
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}
	for name, state := range map[string]corev1.ContainerStatus{
		"runs":       {State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		"has ended":  {State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}},
		"runs again": {RestartCount: 1, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}},
	} {
		pod := unstartedPod(scheduled)
		state.Name = objects.ContainerMySQL
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{state}
		if got := podFacts(pod, "", &patience{now: start.Add(time.Hour)}); got.Trouble != "" {
			t.Errorf("%s: %q", name, got.Trouble)
		}
	}
}

func TestWhatAContainerLacksIsNamedWithItsField(t *testing.T) {
	pod := unstartedPod()
	server := &pod.Spec.Containers[0]
	server.EnvFrom = []corev1.EnvFromSource{
		{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}},
		{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "tokens"}}},
	}
	key := corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "mine"}, Key: "k"}
	server.Env = append(server.Env, corev1.EnvVar{Name: "TOKEN", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &key}})
	for text, want := range map[string]struct{ says, reason string }{
		`configmap "settings" not found`:                                {"(spec.envFrom); create it, or correct that field", api.ReasonServerDoesNotStart},
		`secret "tokens" not found`:                                     {"(spec.envFrom)", api.ReasonSecretMissing},
		`secret "mine" not found`:                                       {"(spec.env, TOKEN)", api.ReasonSecretMissing},
		"couldn't find key k in Secret shop/mine":                       {"(spec.env, TOKEN)", api.ReasonSecretMissing},
		`secret "c1-1-server-tls" not found`:                            {"create what it names", api.ReasonSecretMissing},
		"container has runAsNonRoot and image will run as root (pod …)": {"correct spec.podSecurityContext", api.ReasonServerDoesNotStart},
	} {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: objects.ContainerMySQL, State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: text},
		}}}
		got := podFacts(pod, "", &patience{now: start})
		if !strings.Contains(got.Trouble, text) || !strings.Contains(got.Trouble, want.says) || got.TroubleReason != want.reason {
			t.Errorf("trouble %q, %q", got.Trouble, got.TroubleReason)
		}
	}
}

func TestClaimThatNoProvisionerServesNamesClassAndProvisioner(t *testing.T) {
	pod := aPod("c1-1")
	pod.CreationTimestamp = metav1.NewTime(start.Add(time.Minute))
	for name, tc := range map[string]struct {
		mode  storagev1.VolumeBindingMode
		node  string
		since time.Duration
		says  bool
	}{
		"at once, too early":         {storagev1.VolumeBindingImmediate, "", volumePatience - time.Second, false},
		"at once":                    {storagev1.VolumeBindingImmediate, "", volumePatience, true},
		"waits for its Pod's node":   {storagev1.VolumeBindingWaitForFirstConsumer, "", time.Hour, false},
		"the node's turn, too early": {storagev1.VolumeBindingWaitForFirstConsumer, "node-3", time.Minute + volumePatience - time.Second, false},
		"the node's turn":            {storagev1.VolumeBindingWaitForFirstConsumer, "node-3", time.Minute + volumePatience, true},
	} {
		t.Run(name, func(t *testing.T) {
			class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, Provisioner: "nobody.example/disk", VolumeBindingMode: &tc.mode}
			c := aCluster()
			claim := objects.PVCs(c, "c1-1")[0]
			claim.CreationTimestamp = metav1.NewTime(start)
			claim.Spec.StorageClassName, claim.Status.Phase = new("fast"), corev1.ClaimPending
			if tc.node != "" {
				claim.Annotations = map[string]string{annotationSelectedNode: tc.node}
			}
			seen := snapshot(start.Add(tc.since), c, pod, claim, class)
			got := seen.Instances[0].Volumes[0].Trouble
			if want := "the provisioner nobody.example/disk of the storage class fast (spec.storage.storageClass) has not made its volume"; strings.Contains(got, want) != tc.says || tc.says == (got == "") {
				t.Errorf("trouble %q", got)
			}
			if early := strings.Contains(name, "early"); early && seen.Patience != time.Second {
				t.Errorf("looked at again after %s", seen.Patience)
			}
		})
	}
}

func TestClaimIsReportedByTheFieldThatNamesItsClass(t *testing.T) {
	c := aCluster()
	c.Spec.Storage.PVCTemplate = &corev1.PersistentVolumeClaimSpec{StorageClassName: new("fast")}
	c.Spec.BinlogStorage = &api.StorageConfiguration{StorageClass: new("slow"), Size: c.Spec.Storage.Size}
	existing := []any{c}
	for _, claim := range objects.PVCs(c, "c1-1") {
		claim.Status.Phase = corev1.ClaimPending
		existing = append(existing, claim)
	}
	volumes := snapshot(start, existing...).Instances[0].Volumes
	for n, want := range []string{"fast (spec.storage.pvcTemplate.storageClassName)", "slow (spec.binlogStorage.storageClass)"} {
		if len(volumes) != 2 || !strings.Contains(volumes[n].Trouble, want) || !strings.Contains(volumes[n].Trouble, "create that class, or delete the Cluster") {
			t.Errorf("volumes %+v: none says %q", volumes, want)
		}
	}
}

func TestClaimThatIsSmallerThanAskedForSaysSo(t *testing.T) {
	c := aCluster()
	claim := objects.PVCs(c, "c1-1")[0]
	c.Spec.Storage.Size = resource.MustParse("2Gi")
	if got := snapshot(start, c, claim).Instances[0].Volumes[0].Small; got != "asks for 1Gi and spec.storage.size is 2Gi" {
		t.Errorf("small: %q", got)
	}
}

func TestPodTrouble(t *testing.T) {
	waiting := func(reason, message string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
			p.Status.ContainerStatuses[0].Image = "mysql:0"
		}
	}
	for name, tc := range map[string]struct {
		change       func(*corev1.Pod)
		says, reason string
	}{
		"running":       {func(*corev1.Pod) {}, "", ""},
		"starting":      {waiting("ContainerCreating", ""), "", ""},
		"pull":          {waiting("ErrImagePull", "x"), "the image mysql:0 cannot be pulled: correct spec.imageName", api.ReasonImagePull},
		"pull back-off": {waiting("ImagePullBackOff", "y"), "the image mysql:0 cannot be pulled: correct spec.imageName", api.ReasonImagePull},
		"name":          {waiting("InvalidImageName", ""), "spec.imageName", api.ReasonImagePull},
		"secret":        {waiting("CreateContainerConfigError", `secret "mine" not found`), `secret "mine" not found`, api.ReasonSecretMissing},
		"operator's image": {func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: objects.ContainerBootstrap, Image: "op:0", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}}
		}, "the operator's image op:0", api.ReasonImagePull},
		"crash": {func(p *corev1.Pod) {
			waiting("CrashLoopBackOff", "back-off 5m0s")(p)
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Message: "a\nthe volume is locked\n"}
		}, "again and again: the volume is locked", api.ReasonServerDoesNotStart},
		"crash without words": {func(p *corev1.Pod) {
			waiting("CrashLoopBackOff", "")(p)
			p.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}
		}, "OOMKilled, exit code 137", api.ReasonServerDoesNotStart},
		"unschedulable": {func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/3 nodes are available.", LastTransitionTime: metav1.NewTime(start.Add(-time.Minute))})
		}, "0/3 nodes are available (see spec.resources", api.ReasonPodUnschedulable},
		"on its way out": {func(p *corev1.Pod) { waiting("ErrImagePull", "")(p); p.DeletionTimestamp = &metav1.Time{Time: start} }, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := aPod("c1-1")
			tc.change(pod)
			got := podFacts(pod, "", &patience{now: start})
			if !strings.Contains(got.Trouble, tc.says) || (tc.says == "") != (got.Trouble == "") || got.TroubleReason != tc.reason {
				t.Errorf("trouble %q, %q", got.Trouble, got.TroubleReason)
			}
		})
	}
	pod := aPod("c1-1")
	pod.Status.Phase, pod.Status.Reason = corev1.PodFailed, "Evicted"
	if got := podFacts(pod, "", &patience{now: start}); got.Ended != "Failed (Evicted)" {
		t.Errorf("ended %q", got.Ended)
	}
}

func TestClaimThatCannotBeServedNamesTheClass(t *testing.T) {
	class := func(name string, isDefault bool) *storagev1.StorageClass {
		c := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if isDefault {
			c.Annotations = map[string]string{annotationDefaultClass: "true"}
		}
		return c
	}
	for name, tc := range map[string]struct {
		asked   *string
		classes []any
		says    string
	}{
		"waits for its Pod":   {new("fast"), []any{class("fast", false)}, ""},
		"no such class":       {new("fast"), []any{class("slow", false), class("big", false)}, "the storage class fast (spec.storage.storageClass) does not exist; there are: big, slow; create that class, or"},
		"no class at all":     {new("fast"), nil, "does not exist; there is none"},
		"no default":          {nil, []any{class("slow", false)}, "spec.storage.storageClass is not set, and there is no default storage class; storage classes: there are: slow; mark a class as the default"},
		"the default will do": {nil, []any{class("slow", true)}, ""},
		"made by hand":        {new(""), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := aCluster()
			claim := objects.PVCs(c, "c1-1")[0]
			claim.Spec.StorageClassName, claim.Status.Phase = tc.asked, corev1.ClaimPending
			if got := snapshot(start, append(tc.classes, c, claim)...).Instances[0].Volumes[0].Trouble; (tc.says == "") != (got == "") || !strings.Contains(got, tc.says) {
				t.Errorf("trouble %q", got)
			}
		})
	}
}
