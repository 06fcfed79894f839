// Package cmd is the verbs of `kubectl cnmsql`, one file each: parse the
// arguments, fetch, hand over to package view.
//
// What must stay true: a verb that changes something says that it was asked for
// unless it saw it done; a wrong name is an error that lists what exists; an
// exit code of 0 means what the text says.
package cmd
