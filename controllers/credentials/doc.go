// Package credentials keeps the Secrets with the passwords of a Cluster's accounts: root, the application's,
// the replication's and the instance manager's own.
//
// What holds:
//   - A key that has a value is never overwritten, nor is a user's own Secret ever written.
//   - Passwords are generated only until the Cluster had its first primary. Afterwards the servers know the
//     password, and a new one would lock everybody out: a missing Secret is a condition that says what to
//     create, and creating it is enough.
//   - The contents of Secrets are read when they are needed and kept nowhere.
//
// It owns the condition CredentialsReady and no other status.
package credentials
