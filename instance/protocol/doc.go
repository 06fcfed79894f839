// Package protocol is the control API of an instance manager: the paths and the
// values that travel between the operator, the instances and the plugin.
//
// The API is served on api.PortControl over mutual TLS. Clients present a
// certificate of the Cluster's own authority: the operator's (subject
// cnmsql-control) may do everything, another instance's (its server
// certificate) may read, and ask it to vouch for its own hold of the primary
// lease.
//
// The package is pure. It imports gtid and the standard library. Unknown fields
// are ignored on both sides, so that either may be a version ahead.
package protocol
