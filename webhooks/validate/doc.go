// Package validate judges a Cluster: each check is a small function in a list, and every message has the field
// and says what to do.
//
// It is used at admission, by reconcilers (a Cluster may have been stored while the webhook was absent) and by
// the plugin. It repeats what the CRD's own rules say, for the same reason.
//
// The package is pure and total: it takes a Cluster with or without defaults, changes nothing and never
// panics. It imports the API types, instance/mycnf and apimachinery.
package validate
