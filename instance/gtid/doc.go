// Package gtid is the arithmetic of global transaction identifiers: which transactions a server holds, which of them
// another one lacks, and how many those are. Every question about lost or errant transactions ends here.
//
// # Two universes
//
// A MySQL set lists transactions: intervals per server uuid and tag. A MariaDB position names the last transaction of
// each replication domain and stands for that transaction and everything before it in the domain. A [Set] has a part
// for each. The parts never meet: no MySQL transaction is ever contained in a MariaDB position or the other way round, so
// mixing servers of both kinds by mistake gives "not contained", a difference that is the whole left side and an empty
// intersection. The union holds both and prints a text that no server accepts.
//
// # Invariants
//
//   - A Set is immutable. No method changes its receiver or its argument; results may share memory with both.
//   - A Set is normalised when it is made: sequences in order of uuid and tag, intervals ascending, disjoint and not
//     touching, none empty. Equal sets therefore print the same text, and comparing needs no allocation.
//   - The zero value is the empty set. "Not read" is not a set: callers that need the difference keep it beside the set.
//   - One order underlies everything: a.Contains(b), b.Minus(a).IsEmpty() and a.Union(b).Equal(a) always say the same.
//   - Parsing is total and strict: malformed text is an error, never an emptier set.
//
// Imports: the standard library only.
package gtid
