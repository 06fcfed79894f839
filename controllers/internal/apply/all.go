package apply

import (
	"context"
	"errors"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Result is what became of several objects.
type Result struct {
	// Written is how many were made or changed.
	Written int
	// Foreign are the names that are taken by somebody else's objects.
	Foreign []*ForeignError
	// Err joins all other errors; one object's error does not keep the others from being applied.
	Err error
}

// All applies every object, and goes on after an error.
func All[T client.Object](ctx context.Context, c client.Client, manager string, owner client.Object, desired []T) Result {
	var r Result
	for _, o := range desired {
		changed, err := Apply(ctx, c, manager, owner, o)
		var taken *ForeignError
		switch {
		case errors.As(err, &taken):
			r.Foreign = append(r.Foreign, taken)
		case err != nil:
			r.Err = errors.Join(r.Err, err)
		case changed:
			r.Written++
		}
	}
	return r
}

// And adds up two results.
func (r Result) And(other Result) Result {
	return Result{
		Written: r.Written + other.Written,
		Foreign: append(r.Foreign, other.Foreign...),
		Err:     errors.Join(r.Err, other.Err),
	}
}

// ForeignMessage says in one sentence what is in the way; empty when nothing is.
func (r Result) ForeignMessage() string {
	texts := make([]string, 0, len(r.Foreign))
	for _, f := range r.Foreign {
		texts = append(texts, f.Error())
	}
	return strings.Join(texts, "; ")
}
