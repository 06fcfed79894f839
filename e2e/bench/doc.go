// Command bench measures on a lab how long writes stand still, as an application
// sees it, when the primary is moved or lost. Run it with `make bench-failover`,
// from the root of the checkout.
//
// It does the same to two sides that run beside each other on the same nodes,
// with the same server settings:
//
//   - ours: a Cluster of three, with the operator.
//   - scripted: three plain Pods. A script in this program takes the steps, with
//     open SQL connections to every server and label patches for the Service.
//     It detects nothing, decides nothing and keeps nobody else out: it is what
//     the steps themselves cost here.
//
// Ways: switchover (a planned one), kill (SIGKILL to the primary's mysqld) and
// delete (of the primary's Pod; ours alone). Both sides take turns, so that what
// else the machine does falls on both.
//
// Two figures are taken for each run. "service" is the longest time between two
// acknowledged writes of an application that writes through the Service which
// leads to the primary. "direct" is the longest time during which no server
// acknowledged anything to writers that ask each of them directly, all the time:
// what is left when routing and reconnecting are taken away.
//
// After each run every instance is read, and the program fails when a write that
// was acknowledged is missing on any of them.
//
// With -trace it prints a timeline of one run of each way on each side, the one in
// which no server wrote for longest: what the API objects, the instance managers,
// the operator, the script and the writers showed, in milliseconds since the last
// write before the pause. API changes have the time at which a watch told of
// them, log lines the time in the line. To follow all that takes time of the
// machine, too: figures are better taken without.
package main
