// Package sim checks the rules about who may accept writes against a modelled world.
//
// The world has 2 to 5 instances, an API server, an operator and clients. What decides in it is shipped code:
// core.Decide for the operator, role.Decide for the instances. What carries the decisions out, and
// everything below, is modelled: processes that can be killed or paused at any step, clocks that run at
// different rates and tell different times, links that fail in one direction, calls whose requests or answers
// are late or lost, watches that stand still, servers with a binary log, a relay log and semi-synchronous
// acknowledgements.
//
// After every event the invariants are looked at; see invariants.go. A Plan is a configuration, a list of faults and a
// seed. The same Plan always runs the same way, so that a violation is replayed, and told as a story, from
// its Plan alone.
//
// The package is test support. It knows no clock, no file and no goroutine; chance comes from the seed.
package sim
