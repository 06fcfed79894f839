package agent

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// supersedes tells whether a is b or a later state of it. A watch may still deliver what was true before our
// own update; versions of one object are ordered, also across a deletion. One that is not understood counts
// as later.
func supersedes(a, b metav1.Object) bool {
	order, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err != nil || order >= 0
}
