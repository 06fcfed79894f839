// Package build makes everything a lab runs: programs from Go modules, the
// MySQL root filesystem from Debian packages, and image archives from both.
//
// All of it goes to a cache, in directories named by a key over what they are
// made from: sources, go.mod, go.sum, the recipe and the Go version. A
// directory gets its name only when it is complete, so a build that was killed
// leaves nothing that a later one would take for done. Builds exclude each other
// by a lock on the cache.
//
// It may import the standard library and image.
package build
