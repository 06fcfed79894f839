// Package docs has no code: its tests hold the documents in this folder, and the
// borders between packages that they describe, to what the code is.
package docs
