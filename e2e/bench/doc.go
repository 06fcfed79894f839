// Command bench measures on a lab how long writes stand still, as an application
// sees it, when the primary is moved or lost. Run it with `make bench-failover`,
// from the root of the checkout.
//
// It does the same to several sides that run beside each other on the same nodes,
// with the same server settings:
//
//   - ours: a Cluster of three, with the operator.
//   - scripted: three plain Pods. A script in this program takes the steps, with
//     open SQL connections to every server and label patches for the Service.
//     It decides nothing and keeps nobody else out, and it detects one thing, that
//     its connection breaks: it is what the steps themselves cost here.
//   - gr: three plain Pods with Group Replication in single-primary mode, which
//     detects and elects by itself. A suspected member is expelled at once
//     (group_replication_member_expel_timeout=0), which is the fastest there is.
//   - gr-default: the same three with that setting's default, 5 s.
//
// The sides take turns, so that what else the machine does falls on all. Ways:
//
//   - switchover: a planned one; with kubectl cnmsql promote, in SQL, and with
//     group_replication_set_as_primary.
//   - kill: SIGKILL to the primary's mysqld.
//   - delete: of the primary's Pod, as kubectl does it. The script learns of it as
//     of a kill, and its servers have no time to stop.
//   - oom: the limit of the container's memory is lowered to what is in use, and
//     more is asked for in it. The kernel then kills mysqld; where cgroup v2 is
//     in use, everything in the container.
//   - container: all processes of the container are killed, as an exhausted memory
//     does it on cgroup v2.
//   - node: the primary's node crashes with all that runs on it, and its network is
//     gone. Nobody closes connections. There is no script for it, since all that
//     it takes is to find out. Neither the operator nor the cluster's DNS is on
//     that node: losing those is another experiment.
//
// Two figures are taken for each run. "service" is the longest time between two
// acknowledged writes of an application that writes through the Service which
// leads to the primary. "direct" is the longest time during which no server
// acknowledged anything to writers that ask each of them directly, all the time:
// what is left when routing and reconnecting are taken away. Group Replication has
// no Service here. Its applications go through a router, which asks all members
// as those writers do: compare the direct figures.
//
// After each run every instance is read, and the program fails when a write that
// was acknowledged is missing on any of them.
//
// With -results every result is added to a file, and the table has those of earlier
// runs, too: so all can be measured a part at a time. With -trace it prints a
// timeline of one run of each way on each side, the one in which no server wrote
// for longest: what the API objects, the instance managers, the operator, the
// script and the writers showed, in milliseconds since the last write before the
// pause. API changes have the time at which a watch told of them, log lines the
// time in the line. To follow all that takes time of the machine, too: figures
// are better taken without.
package main
