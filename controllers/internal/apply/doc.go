// Package apply is the one way in which reconcilers make and change the objects they own.
//
// What holds:
//   - Nothing is written when the live object already is as it should be.
//   - An object that exists and is not controlled by the owner is never changed (ForeignError). That is
//     certain even when the caller's cache does not show the object: a new object is made with a create,
//     which fails when the name is taken, never with an apply, which would merge into it.
//   - Only the fields in the desired object are ours. What others set (node ports, load balancer fields,
//     foreign annotations) stays; a field of ours that is no longer desired is removed.
//
// It imports controller-runtime's client and apimachinery.
package apply
