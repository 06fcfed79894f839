package topology

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/controllers/internal/apply"
	"cnmsql.co/operator/controllers/topology/core"
)

// refusalShown is how long something is refused before it is shown: what others are only about to make (the
// ServiceAccount of a new Cluster, an object of an earlier one that is still on its way out) passes by itself.
const refusalShown = 5 * time.Second

// refusal is what the API server said instead of doing something for an instance.
type refusal struct {
	// text is for people, with what to do; reason is a condition's.
	text, reason string
	// since is when the unbroken row of refusals for this instance began, last when the last of it came.
	since, last time.Time
	// ripe tells that the last one is the first to be shown.
	ripe bool
}

// lasts tells that it was refused again after more than a moment.
func (f refusal) lasts() bool { return f.last.Sub(f.since) >= refusalShown }

// refusals remembers what was refused in the last pass over each Cluster. Nothing depends on it but what is
// shown: one that is lost is met again. The zero value is ready to use.
type refusals struct {
	mu sync.Mutex
	of map[types.NamespacedName]map[string]refusal // by Cluster, by instance
}

// note takes what was refused in a pass that was finished, and tells which of it is new or has changed.
func (r *refusals) note(cluster types.NamespacedName, refused map[string]refusal) (news []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.of[cluster]
	for name, now := range refused {
		old, known := before[name]
		if known {
			now.since = old.since
			now.ripe = now.lasts() && !old.lasts()
			refused[name] = now
		}
		if old.text != now.text {
			news = append(news, now.text)
		}
	}
	if len(refused) == 0 {
		delete(r.of, cluster)
		return nil
	}
	if r.of == nil {
		r.of = map[types.NamespacedName]map[string]refusal{}
	}
	r.of[cluster] = refused
	return news
}

// shown is what to show of an instance; empty when nothing is refused, or has only just been.
func (r *refusals) shown(cluster types.NamespacedName, instance string) (text, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f, ok := r.of[cluster][instance]; ok && f.lasts() {
		return f.text, f.reason
	}
	return "", ""
}

// again is when to try once more: after as long as it was tried already, within bounds, or at once to show it; zero
// when nothing is refused.
func (r *refusals) again(cluster types.NamespacedName, now time.Time) (wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, f := range r.of[cluster] {
		next := min(max(now.Sub(f.since), firstRetry), longestRetry)
		if f.ripe {
			next = firstRetry
		}
		wait = sooner(wait, next)
	}
	return wait
}

func (r *refusals) forget(cluster types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, cluster)
}

// refused makes a refusal of an error; false when it is an error of another kind, such as an API server that
// does not answer.
func refused(a core.Action, err error, now time.Time) (refusal, bool) {
	if taken, ok := errors.AsType[*apply.ForeignError](err); ok {
		return refusal{text: taken.Error(), reason: api.ReasonForeignObject, since: now, last: now}, true
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return refusal{}, false
	}
	code := status.Status().Code
	judged := code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests && code != http.StatusConflict
	if !judged && !apierrors.IsInternalError(err) { // a policy's webhook that cannot be called is the latter
		return refusal{}, false
	}
	text := fmt.Sprintf("the API server refuses to %s: %s", request(a), strings.TrimSuffix(err.Error(), "."))
	if what := whatToDo(a, err.Error()); what != "" {
		text += "; " + what
	}
	return refusal{text: text, reason: api.ReasonApplyFailed, since: now, last: now}, true
}

// request is what was asked for, in words.
func request(a core.Action) string {
	switch a.Kind {
	case core.CreateVolumes:
		return "create its volume claims"
	case core.CreatePod:
		return "create its Pod"
	case core.DeletePod:
		return "delete its Pod"
	case core.LabelPod:
		return "label its Pod"
	case core.RecordFailover, core.ClearAcceptLoss:
		return "annotate the Cluster"
	}
	return string(a.Kind)
}

// remedies are what to do, by what a refusal says; the first that fits is given. What names a field of the Pod
// is said again with the field of the Cluster that it comes from.
var remedies = []struct{ says, do string }{
	{"exceeded quota", "change that quota, or spec.resources, spec.storage or spec.instances"},
	{"failed quota", "change that quota, or set what it asks for in spec.resources"},
	{"violates PodSecurity", "change the Pod Security level of the namespace, or spec.podSecurityContext and spec.securityContext"},
	{"no PriorityClass", "create that PriorityClass, or correct spec.priorityClassName"},
	{" per Container", "correct spec.resources, or change that LimitRange"},
	{" per Pod", "correct spec.resources, or change that LimitRange"},
	{" per PersistentVolumeClaim", "correct spec.storage or spec.binlogStorage, or change that LimitRange"},
	{"service account", "the operator makes it: see the Cluster's other conditions and events"},
	{"admission webhook", "satisfy the policy behind that webhook, or change it"},
	{".tolerations", "correct spec.affinity.tolerations"},
	{".nodeSelector", "correct spec.affinity.nodeSelector"},
	{"ffinity", "correct spec.affinity"},
	{".topologySpreadConstraints", "correct spec.topologySpreadConstraints"},
	{".resources", "correct spec.resources"},
	{".envFrom", "correct spec.envFrom"},
	{".env[", "correct spec.env"},
	{"ecurityContext", "correct spec.podSecurityContext or spec.securityContext"},
	{"riorityClassName", "correct spec.priorityClassName"},
	{"chedulerName", "correct spec.schedulerName"},
	{".imagePullSecrets", "correct spec.imagePullSecrets"},
	{"metadata.", "correct spec.inheritedMetadata"},
}

func whatToDo(a core.Action, text string) string {
	if a.Kind == core.CreateVolumes && strings.Contains(text, "is invalid") {
		return "correct spec.storage or spec.binlogStorage"
	}
	for _, r := range remedies {
		if strings.Contains(text, r.says) {
			return r.do
		}
	}
	return ""
}
