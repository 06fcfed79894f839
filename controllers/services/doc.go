// Package services keeps the Services of a Cluster: one for each role (rw, ro, r) and a headless one for each
// instance.
//
// What holds: in the steady state nothing is written; what others set on a Service (node ports, load
// balancer fields, annotations) stays; a Service of the same name that is not the Cluster's is never taken
// over. Labels on Pods, not this package, decide where a Service leads. The Service of a removed instance goes
// once its Pod is gone, one that is disabled or no longer added at once.
//
// It owns the condition ServicesReady and no other status.
package services
