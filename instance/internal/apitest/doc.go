// Package apitest is an API server for tests, as far as an instance needs one: one Cluster and one Lease over
// HTTP, with conditional updates and watches. It is as strict as the real one where that matters to an
// instance: an update without the present resourceVersion is a conflict, a status update changes nothing but
// the status, and a watch begins with the present object.
package apitest
