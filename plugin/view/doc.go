// Package view turns what the API server knows of a Cluster into what a person
// reads. It is pure: objects and the present time in, a value or a text out.
//
// What must stay true: what is not known is shown as unknown, never as good. A
// part that could not be read (a missing permission) degrades that part alone,
// and says so.
//
// It imports the API, gtid, core and the Kubernetes API types.
package view
