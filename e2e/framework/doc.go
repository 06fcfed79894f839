// Package framework drives the product as people and applications do: it brings
// a lab up, installs the operator, applies manifests, and writes through the
// Services with a ledger of every acknowledged write. The demonstration and the
// end-to-end suite share it.
//
// What must stay true: a wait has a condition and a deadline, and says at its end
// what it saw last; nothing sleeps for an effect. The ledger counts a write as
// acknowledged only when the server said so, and as possible when it may have
// happened.
package framework
