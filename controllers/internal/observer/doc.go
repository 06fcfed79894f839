// Package observer keeps one stream of reports from every instance manager, so that a change is known at once and
// nothing is polled.
//
// What holds:
//   - A report is of the Pod that is known now: one of an earlier Pod of the same name is dropped.
//   - An instance is silent when an attempt to connect failed, or nothing was heard for three heartbeats. Before the
//     first attempt has finished nothing is known of it, which is not silence.
//   - Ages are by this process's monotonic clock, from the arrival of a report.
//   - Growth of transaction sets, heartbeats and renewals wake nobody.
//   - Goroutines and connections are as many as instances that are followed: one each. No connection is kept for
//     later, since a kept connection to a lost node would swallow the next question.
//
// The operator proves itself with the certificate in the Secret <cluster>-client-tls and accepts only the named
// instance's own, issued by the Cluster's authority.
//
// The package imports the API, protocol, and of controller-runtime only what a source of events needs.
package observer
