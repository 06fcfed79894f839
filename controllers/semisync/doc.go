// Package semisync keeps the number of acknowledgements that the primary waits for, and shows whether
// semi-synchronous replication really works: what is configured is compared with what the running servers say.
//
// What holds about status.semiSync.effective, by which a failover judges whether an acknowledged commit could
// be only on instances that do not answer:
//   - It is never above what the primary waits for. Lowering is written to the status before the primary is
//     told. Raising tells the primary first, and is written only when that many replicas hold what the primary
//     had executed at that moment: everything acknowledged before is then on as many of them.
//   - A server whose state is not known changes nothing in it.
//
// Where dataDurability is preferred, the primary waits for no more acknowledgements than there are replicas to give
// them, and at least for one; where it is required, always for as many as are configured. Who can give them is who
// receives from the primary with semi-sync in effect, Ready or not.
//
// Where commits wait for acknowledgements that do not come, and keep the clone of a replica that would give them from its
// end, the primary is asked to step down and open again: nobody is told that these commits succeeded.
//
// The servers switch the sides of semi-sync on and off by themselves, with their role. This package only sets
// the number. It owns status.semiSync and the condition SemiSyncReady.
package semisync
