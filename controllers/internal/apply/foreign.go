package apply

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ForeignError says that a name is taken by an object that is not ours. It is left as it is.
type ForeignError struct {
	// Kind and Name are of the object that is in the way.
	Kind, Name string
}

// Error tells what is in the way and what a person can do.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("%s %s exists and does not belong to this Cluster: delete or rename it", e.Kind, e.Name)
}

func foreign(o client.Object) *ForeignError {
	return &ForeignError{Kind: o.GetObjectKind().GroupVersionKind().Kind, Name: o.GetName()}
}

func name(o client.Object) string {
	return fmt.Sprintf("%s %s/%s", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName())
}
