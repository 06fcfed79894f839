package topology

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/topology/core"
)

func forbidden(why string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "c1-1", errors.New(why))
}

// ready is the condition Ready of the Cluster as it is stored.
func (b *bench) ready() metav1.Condition {
	b.t.Helper()
	c := &api.Cluster{}
	if err := b.Live.Get(b.t.Context(), shop, c); err != nil {
		b.t.Fatal(err)
	}
	if found := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReady); found != nil {
		return *found
	}
	return metav1.Condition{}
}

// refusing is a Cluster to whose claims and Pods the API server says no.
func refusing(t *testing.T, why error) *bench {
	t.Helper()
	b := newBench(t, aCluster(), aLease(""))
	b.say = core.Decide
	b.Fail("c1-1", why)
	b.must()
	b.told()
	b.Taken()
	return b
}

func TestWhatTheAPIServerRefusesIsShownAndToldOnce(t *testing.T) {
	b := refusing(t, forbidden("exceeded quota: small, requested: pods=1, used: pods=1, limited: pods=1"))
	b.clock = b.clock.Add(refusalShown)
	if wait := b.must().RequeueAfter; wait != firstRetry {
		t.Errorf("shown after %s", wait)
	}
	b.must()
	c := b.ready()
	for _, word := range []string{"c1-1: the API server refuses to create its volume claims", "exceeded quota: small", "change that quota, or spec.resources"} {
		if !strings.Contains(c.Message, word) {
			t.Errorf("the condition lacks %q: %s", word, c.Message)
		}
	}
	if got := b.told(); c.Reason != api.ReasonApplyFailed || len(got) != 1 || got[0] != "Warning "+api.EventProvisioningFailed+" "+c.Message {
		t.Errorf("reason %s, events %q", c.Reason, got)
	}
	b.Taken()
	for range 20 {
		b.clock = b.clock.Add(time.Second)
		b.must()
		b.wrote("create *v1.PersistentVolumeClaim c1-1")
	}
	if got := b.told(); len(got) != 0 {
		t.Errorf("told again: %q", got)
	}
	b.Fail("c1-1", nil)
	b.must()
	b.must()
	if c := b.ready(); strings.Contains(c.Message, "refuses") {
		t.Errorf("shown although it is refused no more: %s", c.Message)
	}
}

func TestWhatIsRefusedForAMomentIsNotShown(t *testing.T) {
	b := refusing(t, forbidden(`error looking up service account shop/c1: serviceaccount "c1" not found`))
	for range 3 {
		b.clock = b.clock.Add(refusalShown / 4)
		b.must()
	}
	b.Fail("c1-1", nil)
	b.clock = b.clock.Add(refusalShown)
	for range 3 {
		b.must()
		if c := b.ready(); strings.Contains(c.Message, "service account") {
			t.Errorf("shown: %s", c.Message)
		}
	}
	for _, e := range b.told() {
		if strings.HasPrefix(e, "Warning") {
			t.Errorf("told: %s", e)
		}
	}
}

func TestWhatIsRefusedIsTriedAgainInGrowingIntervalsThatDelayNothingElse(t *testing.T) {
	b := refusing(t, forbidden("exceeded quota: small"))
	wait, tries := time.Duration(0), 0
	for end := b.clock.Add(time.Minute); b.clock.Before(end); tries++ {
		if wait = b.must().RequeueAfter; wait < firstRetry || wait > longestRetry {
			t.Fatalf("tried again after %s", wait)
		}
		b.clock = b.clock.Add(wait)
	}
	if wait != longestRetry || tries > 15 {
		t.Errorf("%d tries in a minute, the last two %s apart", tries, wait)
	}
	b.say = func(s core.Snapshot) core.Decision {
		d := core.Decide(s)
		d.Recheck = time.Second
		return d
	}
	if result := b.must(); result.RequeueAfter != time.Second {
		t.Errorf("what the rules wait for is delayed by %s", result.RequeueAfter)
	}
}

func TestWhatIsSomebodyElsesIsShownAndTold(t *testing.T) {
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "c1-1"}}
	b := newBench(t, aCluster(), aLease(""), foreign)
	b.say = core.Decide
	for range 5 {
		b.must()
		b.clock = b.clock.Add(refusalShown)
	}
	const want = "c1-1: Pod c1-1 exists and does not belong to this Cluster: delete or rename it"
	if c := b.ready(); c.Message != want || c.Reason != api.ReasonForeignObject {
		t.Errorf("condition %+v", c)
	}
	if got := b.told(); len(got) != 1 || got[0] != "Warning "+api.EventForeignObject+" "+want {
		t.Errorf("events %q", got)
	}
}

func TestRefusalsNameWhatToCorrect(t *testing.T) {
	invalid := func(path *field.Path) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "c1-1", field.ErrorList{field.Invalid(path, "x", "is bad")})
	}
	spec, container := field.NewPath("spec"), field.NewPath("spec").Child("containers").Index(0)
	for want, err := range map[string]error{
		"spec.resources, spec.storage or spec.instances":   forbidden("exceeded quota: q, requested: pods=1"),
		"what it asks for in spec.resources":               forbidden("failed quota: q: must specify limits.cpu for: mysql"),
		"Pod Security level of the namespace":              forbidden(`violates PodSecurity "restricted:latest": runAsNonRoot != true (pod or container "mysql" must set securityContext.runAsNonRoot=true)`),
		"create that PriorityClass":                        forbidden("no PriorityClass with name high was found"),
		"spec.resources, or change that LimitRange":        forbidden("maximum cpu usage per Container is 1, but limit is 2"),
		"spec.binlogStorage, or change that LimitRange":    forbidden("maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi"),
		"policy behind that webhook":                       apierrors.NewBadRequest(`admission webhook "policy.example" denied the request: no`),
		"correct spec.resources":                           invalid(container.Child("resources", "requests")),
		"correct spec.env":                                 invalid(container.Child("env").Index(3).Child("name")),
		"correct spec.envFrom":                             invalid(container.Child("envFrom").Index(0)),
		"correct spec.affinity.tolerations":                invalid(spec.Child("tolerations").Index(0).Child("operator")),
		"correct spec.affinity":                            invalid(spec.Child("affinity", "nodeAffinity")),
		"correct spec.topologySpreadConstraints":           invalid(spec.Child("topologySpreadConstraints").Index(0)),
		"correct spec.podSecurityContext":                  invalid(spec.Child("securityContext", "sysctls")),
		"correct spec.schedulerName":                       invalid(spec.Child("schedulerName")),
		"correct spec.inheritedMetadata":                   invalid(field.NewPath("metadata", "labels")),
		`failed calling webhook "policy.example": timeout`: apierrors.NewInternalError(errors.New(`failed calling webhook "policy.example": timeout`)),
	} {
		if got, ok := refused(core.Action{Kind: core.CreatePod, Instance: "c1-1"}, err, start); !ok || !strings.Contains(got.text, want) {
			t.Errorf("%q does not say %q", got.text, want)
		}
	}
	claim := invalid(spec.Child("resources", "requests"))
	if got, _ := refused(core.Action{Kind: core.CreateVolumes, Instance: "c1-1"}, claim, start); !strings.Contains(got.text, "correct spec.storage") {
		t.Errorf("%q does not name the storage", got.text)
	}
	for name, err := range map[string]error{
		"too many requests": apierrors.NewTooManyRequests("later", 1), "overloaded": apierrors.NewServiceUnavailable("down"),
		"timeout": apierrors.NewServerTimeout(schema.GroupResource{Resource: "pods"}, "create", 1), "network": errors.New("connection refused"),
	} {
		if _, ok := refused(core.Action{Kind: core.CreatePod}, err, start); ok {
			t.Errorf("%s counts as a refusal", name)
		}
	}
}

func TestEventsFitIntoTheAPI(t *testing.T) {
	b := newBench(t, aCluster())
	b.r.tell(aCluster(), []core.Event{{Reason: "Long", Message: strings.Repeat("ä", longestNote)}})
	got := strings.TrimPrefix(b.told()[0], "Normal Long ")
	if len(got) > longestNote || len(got) < longestNote-4 || !strings.HasSuffix(got, "ä…") {
		t.Errorf("%d bytes", len(got))
	}
}
