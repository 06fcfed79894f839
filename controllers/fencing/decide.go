package fencing

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
)

// decision is what is to be done, in this order: the Cluster's annotation, then the Pods', then the status.
type decision struct {
	// annotation is what the Cluster's is to be; nil when it stays.
	annotation *string
	// fenced are the instances that are to be fenced, by name.
	fenced []string
	// began and ended are what changes by that.
	began, ended []string
	condition    metav1.Condition
}

// decide takes a Cluster and the instances whose Pods carry a request.
func decide(c *api.Cluster, onPods []string) decision {
	asked := api.ParseFencing(c.Annotations[api.AnnotationFencing])
	d := decision{}
	if all := api.JoinFencing(asked, onPods); len(all) > len(asked) {
		asked = all
		text := api.FormatFencing(all)
		d.annotation = &text
	}
	known := members(c)
	var unknown []string
	for _, name := range asked {
		// Before it has instances, or when its status was lost, whatever can be one counts.
		_, may := c.InstanceOrdinal(name)
		if slices.Contains(known, name) || len(known) == 0 && may {
			d.fenced = append(d.fenced, name)
		} else {
			unknown = append(unknown, name)
		}
	}
	d.began, d.ended = without(d.fenced, c.Status.FencedInstances), without(c.Status.FencedInstances, d.fenced)
	d.condition = condition(d.fenced, unknown, known)
	return d
}

func condition(fenced, unknown, known []string) metav1.Condition {
	out := metav1.Condition{Type: api.ConditionFencingReady, Status: metav1.ConditionTrue, Reason: api.ReasonNoneFenced, Message: "no instance is fenced"}
	if len(fenced) > 0 {
		out.Reason, out.Message = api.ReasonFenced, "fenced: "+strings.Join(fenced, ", ")+" (kubectl cnmsql fence off ends that)"
	}
	if len(unknown) > 0 {
		out.Status, out.Reason = metav1.ConditionFalse, api.ReasonUnknownInstance
		out.Message += fmt.Sprintf("; the annotation %s names %s, which is no instance: correct it", api.AnnotationFencing, strings.Join(unknown, ", "))
		if len(known) > 0 {
			out.Message += " (there are " + strings.Join(known, ", ") + ")"
		}
	}
	return out
}

// members are the instances that can be fenced.
func members(c *api.Cluster) []string {
	all := slices.Clone(c.Status.InstanceNames)
	if p := c.Status.CurrentPrimary; p != "" && !slices.Contains(all, p) {
		all = append(all, p)
	}
	return all
}

// without are those of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(name string) bool { return slices.Contains(b, name) })
}
