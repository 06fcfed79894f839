// Package manager puts the parts of an instance manager together: the
// supervision of the server, its provisioning, the role, the Lease, the reports
// and the HTTP servers. It is what the program instance runs.
//
// The order of a start: probes, metrics and control API first, so that whoever
// looks sees what is being done; then the volume, its data and the server; the
// role from the beginning on. The order of an end is agent.Shutdown's.
//
// The package reads no environment and no flags: everything comes in Config.
package manager
