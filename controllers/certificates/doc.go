// Package certificates asks cert-manager for a Cluster's certificates: an authority of the Cluster's own, and
// from it one for the operator, one for replication and one for each instance.
//
// What holds:
//   - A certificate is asked for before its instance is made, so that no Pod waits for one.
//   - Nothing is polled: a change of a Certificate wakes its Cluster. Only while cert-manager is not installed
//     is that looked up again, once a minute; then it is taken up without a restart.
//   - The content of Secrets with keys is not looked at here: cert-manager writes them, Pods mount them.
//   - Nothing issued outlives its use: an instance's Secret goes with its Certificate, which goes once the
//     instance is removed and its Pod gone; the others go with the Cluster.
//
// It owns status.certificates and the condition CertificatesReady.
package certificates
