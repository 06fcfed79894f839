package view

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/gtid"
)

// unknown is what stands for what could not be found out.
const unknown = "unknown"

// Input is what was read.
type Input struct {
	Cluster *api.Cluster
	// Pods are the Cluster's; PodsProblem is why they could not be read, empty when they could.
	Pods        []corev1.Pod
	PodsProblem string
}

// New says what the input means.
func New(in Input) Status {
	c := in.Cluster.DeepCopy()
	c.Default()
	st := &c.Status
	s := Status{
		Namespace: c.Namespace, Cluster: c.Name,
		Flavor: string(c.Spec.Flavor), Image: c.Spec.ImageName,
		Phase: string(st.Phase), Reason: st.PhaseReason,
		UpToDate: st.ObservedGeneration == c.Generation,
		Primary:  primary(c), Transition: transition(c), SemiSync: semiSync(c),
		Wanted: c.Spec.Instances, Conditions: conditions(st.Conditions), Notes: []string{},
	}
	if at := st.GTIDExecutedUpdatedAt; at != nil {
		s.RecordedAt = &at.Time
	}
	if s.Phase == "" {
		s.Phase, s.Reason = unknown, "the operator has not looked at this Cluster yet; is it running?"
	}
	pods := byInstance(in.Pods)
	s.Lease = lease(c, pods, in.PodsProblem == "")
	for _, name := range names(c, pods) {
		s.Instances = append(s.Instances, instance(c, name, pods[name], in.PodsProblem == ""))
	}
	if in.PodsProblem != "" {
		s.Notes = append(s.Notes, "the Pods cannot be read: "+in.PodsProblem)
		return s
	}
	s.Ready = new(int32)
	for _, i := range s.Instances {
		if i.Ready != nil && *i.Ready {
			*s.Ready++
		}
	}
	return s
}

func byInstance(pods []corev1.Pod) map[string]*corev1.Pod {
	out := map[string]*corev1.Pod{}
	for n := range pods {
		if name := pods[n].Labels[api.LabelInstance]; name != "" {
			out[name] = &pods[n]
		}
	}
	return out
}

// names are the instances of the status and those that only have a Pod (being removed), by ordinal.
func names(c *api.Cluster, pods map[string]*corev1.Pod) []string {
	list := slices.Clone(c.Status.InstanceNames)
	for name := range pods {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	slices.SortFunc(list, func(a, b string) int {
		x, _ := c.InstanceOrdinal(a)
		y, _ := c.InstanceOrdinal(b)
		return int(x - y)
	})
	return list
}

func primary(c *api.Cluster) Primary {
	st := &c.Status
	p := Primary{
		Instance: st.CurrentPrimary, Generation: st.CurrentPrimaryGeneration,
		Since: micro(st.CurrentPrimaryTimestamp), FailingSince: micro(st.PrimaryFailingSince),
	}
	if st.TargetPrimary != "" && st.TargetPrimary != st.CurrentPrimary {
		p.Asked = st.TargetPrimary
	}
	switch {
	case p.Instance == "":
	case p.Generation <= 1:
		p.Why = "the first primary"
	case byFailover(st):
		p.Why = "promoted by a failover" + verdict(st)
	case byFence(st):
		p.Why = "promoted because the primary before was fenced" + verdict(st)
	default:
		p.Why = "moved here by a switchover"
	}
	return p
}

// verdict is what the election of the present primary came to, for the end of a sentence.
func verdict(st *api.ClusterStatus) string {
	if e := st.LastElection; e != nil && e.Winner == st.CurrentPrimary && e.Verdict != "" {
		return ": " + e.Verdict
	}
	return ""
}

// byFailover tells whether the last promotion was an automatic one. The operator stamps a failover when it
// sees the promotion, shortly after the instance stamped it, each by its own clock.
func byFailover(st *api.ClusterStatus) bool {
	if st.LastFailoverTimestamp == nil || st.LastFailoverTarget != st.CurrentPrimary {
		return false
	}
	return st.CurrentPrimaryTimestamp == nil || st.LastFailoverTimestamp.Sub(st.CurrentPrimaryTimestamp.Time).Abs() < 5*time.Minute
}

// byFence tells whether the last promotion followed a person's fence of the primary before: it was elected, and that is not
// recorded as a failover, which the operator's own is.
func byFence(st *api.ClusterStatus) bool {
	e := st.LastElection
	return e != nil && e.Winner == st.CurrentPrimary && st.CurrentPrimaryTimestamp != nil &&
		e.At.Sub(st.CurrentPrimaryTimestamp.Time).Abs() < 5*time.Minute && st.LastFailoverGeneration != st.CurrentPrimaryGeneration
}

func transition(c *api.Cluster) *Transition {
	t := c.Status.PrimaryTransition
	if t == nil || t.Generation <= c.Status.CurrentPrimaryGeneration {
		return nil
	}
	return &Transition{
		Kind: string(t.Kind), From: t.From, To: t.To, Generation: t.Generation,
		Since: t.StartedAt.Time, Deadline: micro(t.Deadline), Why: t.Reason,
	}
}

func lease(c *api.Cluster, pods map[string]*corev1.Pod, podsKnown bool) Lease {
	l := c.Status.PrimaryLease
	if l == nil {
		return Lease{}
	}
	out := Lease{Known: true, Holder: api.HolderInstance(l.Holder)}
	if l.Since != nil {
		out.Since = &l.Since.Time
	}
	if l.Holder != "" && podsKnown {
		pod := pods[out.Holder]
		out.FormerPod = pod == nil || api.LeaseHolder(out.Holder, string(pod.UID)) != l.Holder
	}
	return out
}

func semiSync(c *api.Cluster) *SemiSync {
	if !c.SemiSyncEnabled() {
		return nil
	}
	s := &SemiSync{Wanted: c.Spec.MinSyncReplicas, Ackers: []string{}}
	if st := c.Status.SemiSync; st != nil {
		s.Known, s.WaitFor, s.Active = true, st.Effective, st.Active
		s.Ackers = append(s.Ackers, st.Ackers...)
	}
	return s
}

func instance(c *api.Cluster, name string, pod *corev1.Pod, podsKnown bool) Instance {
	st := &c.Status
	i := Instance{Name: name, Role: unknown, Pod: unknown, Executed: st.GTIDExecutedByInstance[name], Trouble: trouble(c, name)}
	if s := st.SemiSync; s != nil && c.SemiSyncEnabled() {
		i.Acknowledges = slices.Contains(s.Ackers, name)
	}
	i.Behind = behind(st, name)
	if lag, known := st.ReplicationLagByInstance[name]; known && name != st.CurrentPrimary {
		i.LagMillis = &lag
	}
	switch {
	case pod != nil:
		fromPod(&i, pod)
	case podsKnown:
		i.Pod, i.Role, i.Ready = "missing", "none", new(false)
	}
	if i.Role == api.RoleReplica && pod.Labels[api.LabelRoutable] == "true" {
		i.Source = st.CurrentPrimary
	}
	if !slices.Contains(st.InstanceNames, name) {
		i.Trouble = append(i.Trouble, "is being removed")
	}
	return i
}

func fromPod(i *Instance, pod *corev1.Pod) {
	i.Pod, i.Role, i.Node, i.Created = string(pod.Status.Phase), "none", pod.Spec.NodeName, &pod.CreationTimestamp.Time
	if role := pod.Labels[api.LabelRole]; role != "" {
		i.Role = role
	}
	if pod.DeletionTimestamp != nil {
		i.Pod = "Terminating"
	}
	ready := false
	for _, condition := range pod.Status.Conditions {
		ready = ready || condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
	}
	i.Ready = &ready
	for _, container := range pod.Status.ContainerStatuses {
		i.Restarts += container.RestartCount
	}
	for _, container := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := container.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" && w.Reason != "ContainerCreating" {
			i.Trouble = append(i.Trouble, join(w.Reason, w.Message))
		}
	}
}

// behind counts what the primary had executed and this instance had not, as last recorded.
func behind(st *api.ClusterStatus, name string) *uint64 {
	if name == st.CurrentPrimary {
		return nil
	}
	ours, known := st.GTIDExecutedByInstance[name]
	theirs, primaryKnown := st.GTIDExecutedByInstance[st.CurrentPrimary]
	if !known || !primaryKnown {
		return nil
	}
	a, err := gtid.Parse(ours)
	if err != nil {
		return nil
	}
	b, err := gtid.Parse(theirs)
	if err != nil {
		return nil
	}
	return new(b.Minus(a).Count())
}

// trouble is what the Cluster's status holds against an instance.
func trouble(c *api.Cluster, name string) []string {
	st := &c.Status
	out := []string{}
	for _, p := range st.Provisioning {
		if p.Instance != name {
			continue
		}
		text := p.Step
		if p.Percent > 0 {
			text += fmt.Sprintf(" (%d %%)", p.Percent)
		}
		if p.LastError != "" {
			text += fmt.Sprintf("; attempt %d failed: %s", p.Attempts, p.LastError)
		}
		out = append(out, text)
	}
	for _, d := range st.Divergence {
		if d.Instance == name {
			out = append(out, fmt.Sprintf("diverged: holds %d transactions that the primary does not (%s)", d.Count, d.GTIDSet))
		}
	}
	if slices.Contains(st.FencedInstances, name) {
		out = append(out, "fenced: in no Service, its server stopped or about to be; kubectl cnmsql fence off "+c.Name+" "+name+" ends that")
	}
	if slices.Contains(st.ReplicationBrokenInstances, name) {
		out = append(out, "replication is broken")
	}
	if slices.Contains(st.FailedInstances, name) {
		out = append(out, "failed")
	}
	return out
}

// bad are the conditions that are good when False.
var bad = []string{api.ConditionProgressing, api.ConditionDegraded, api.ConditionFailoverBlocked}

func conditions(list []metav1.Condition) []Condition {
	out := []Condition{}
	for _, c := range list {
		good := meta.IsStatusConditionTrue(list, c.Type)
		if slices.Contains(bad, c.Type) {
			good = meta.IsStatusConditionFalse(list, c.Type)
		}
		out = append(out, Condition{
			Type: c.Type, Status: string(c.Status), Reason: c.Reason, Message: c.Message,
			Since: c.LastTransitionTime.Time, Good: good,
		})
	}
	return out
}

func micro(t *metav1.MicroTime) *time.Time {
	if t == nil {
		return nil
	}
	return &t.Time
}

func join(what, detail string) string {
	if detail == "" {
		return what
	}
	return what + ": " + detail
}
