// Package objects builds every Kubernetes object that the operator makes for a Cluster, except the contents
// of Secrets.
//
// The package is pure: the same Cluster gives the same object, byte for byte. Every builder takes a Cluster
// on which Default was called, and never panics on a specification that admission would have refused.
//
// What holds:
//   - Every object carries the Cluster's label and its owner reference.
//   - inheritedMetadata never replaces a label or annotation of ours and never enters a selector.
//   - A Pod's template hash does not depend on the number of instances, on roles or on inherited metadata:
//     neither scaling nor a change of primary makes a Pod outdated.
//   - Pods are accepted under the restricted Pod Security level, unless the user replaces a security context.
//
// It imports the API types, the kinds' own types, and apimachinery's meta and runtime.
package objects
