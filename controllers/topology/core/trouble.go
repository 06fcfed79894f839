package core

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

// trouble is why an instance's Pod or server does not get going and what to do about it, with a condition's
// reason. The text stays the same while nothing changes: no attempt is counted in it.
func trouble(i *Instance) (message, reason string) {
	if i == nil {
		return "", ""
	}
	for _, v := range i.Volumes {
		if v.Trouble != "" {
			return fmt.Sprintf("%s: volume claim %s: %s", i.Name, v.Name, v.Trouble), api.ReasonVolumeNotBound
		}
	}
	if i.Refused != "" {
		return fmt.Sprintf("%s: %s", i.Name, i.Refused), i.RefusedReason
	}
	if i.Pod != nil && i.Pod.Trouble != "" {
		return fmt.Sprintf("%s: %s", i.Name, i.Pod.Trouble), i.Pod.TroubleReason
	}
	if i.Report == nil {
		return "", ""
	}
	if pr := i.Report.Provision; pr != nil && pr.LastError != "" {
		return fmt.Sprintf("%s: %s failed: %s", i.Name, pr.Step, withRemedy(pr.LastError, i.Name)), api.ReasonServerDoesNotStart
	}
	// One that runs and does not answer, or is being stopped, has started.
	sv := i.Report.Server
	if failing := sv.State == protocol.ServerDown || sv.State == protocol.ServerStarting; failing && sv.Restarts > 0 && sv.LastError != "" {
		return fmt.Sprintf("%s: the server does not start: %s", i.Name, withRemedy(sv.LastError, i.Name)), api.ReasonServerDoesNotStart
	}
	return "", ""
}

// refusedOptions are how a server speaks of an option that it does not take.
var refusedOptions = []string{
	"unknown variable", "unknown option", "ambiguous option", "Error while setting value", "used for variable", "option without preceding group",
}

// withRemedy is an error of a server or of its manager with what to do about it.
func withRemedy(text, instance string) string {
	remedy := "kubectl logs " + instance + " has more"
	for _, option := range refusedOptions {
		if strings.Contains(text, option) {
			remedy = "correct spec.mysql.parameters or spec.mysql.additionalConfigFiles"
		}
	}
	return strings.TrimSuffix(text, ".") + "; " + remedy
}

// tellTroubles tells of every instance that got into trouble, or from one kind of it into another. What is new
// is seen by the status alone, so that an operator that starts anew repeats nothing.
func (p *pass) tellTroubles() {
	for _, name := range p.st.FailedInstances {
		message, reason := trouble(p.s.instance(name))
		if message == "" || slices.Contains(p.c.Status.FailedInstances, name) && !p.otherTrouble(name, message, reason) {
			continue
		}
		event := api.EventProvisioningFailed
		if reason == api.ReasonForeignObject {
			event = api.EventForeignObject
		}
		p.warn(event, "%s", message)
	}
}

// otherTrouble tells that the condition Ready gives another reason for the trouble of this instance. It speaks
// of one instance first; what it says of others is not told apart.
func (p *pass) otherTrouble(name, message, reason string) bool {
	c := meta.FindStatusCondition(p.c.Status.Conditions, api.ConditionReady)
	return c != nil && c.Reason != reason && strings.HasPrefix(c.Message, name+": ") && !strings.HasPrefix(c.Message, message)
}
