package v1alpha1

import (
	"slices"
	"strings"
)

// ParseFencing reads the value of AnnotationFencing on a Cluster: names separated by commas, spaces around them ignored.
// Each is returned once, in alphabetical order.
func ParseFencing(annotation string) []string {
	var names []string
	for name := range strings.SplitSeq(annotation, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return JoinFencing(names, nil)
}

// JoinFencing is all of both lists, each once, in alphabetical order.
func JoinFencing(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// FormatFencing is the inverse of ParseFencing.
func FormatFencing(names []string) string { return strings.Join(names, ",") }
