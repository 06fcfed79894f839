// Package lease is the judging of the primary lease: when its holder renews it, asks the other instances to
// vouch for it, makes its server read-only and kills it, and when somebody else may take it.
//
// Everything is a function of values: a State and a moment of the owner's own clock go in, a State comes out.
// The clock may start anywhere and must go on while the machine is suspended; moments of two clocks are never
// compared. The calls, the timers and the server are instance/agent's.
//
// What must stay true, whatever calls fail, hang or are answered late:
//
//   - A holder whose calls are answered in time never looks expired to anybody.
//   - A server is read-only or dead at Times.Kill after the start of the last call or round that confirmed its
//     manager, and nobody else takes the lease before Times.TTL after it, on any clock whose rate differs from
//     the holder's by less than the ratio of the two.
//   - Whoever vouched does not take the lease for Times.Promise. Only a lease that its holder was seen to give
//     back ends a promise.
//   - Who holds the lease does not vouch.
//
// A State is comparable, and copying it is a snapshot. The package imports the API's constants and the
// standard library.
package lease
