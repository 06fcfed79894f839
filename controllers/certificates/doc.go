// Package certificates asks cert-manager for a Cluster's certificates: an authority of the Cluster's own, and
// from it one for the operator, one for replication and one for each instance.
//
// What holds:
//   - A certificate is asked for before its instance is made, so that no Pod waits for one.
//   - Nothing is polled: a change of a Certificate wakes its Cluster. Only while cert-manager is not installed
//     is that looked up again, once a minute; then it is taken up without a restart.
//   - Secrets with keys are not read here: cert-manager writes them, Pods mount them.
//
// It owns status.certificates and the condition CertificatesReady.
package certificates
