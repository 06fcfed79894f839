// Package scope is what reconcilers see of the API server: caches that hold only what belongs to Clusters, the
// Cluster with its defaults, and the changes of a Cluster that concern a reconciler.
//
// What holds: memory does not grow with objects that are not ours. Of foreign Secrets (a user may name any
// Secret of the namespace) only the identity is kept, never the content.
package scope
