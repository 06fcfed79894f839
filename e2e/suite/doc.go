// Package suite holds one file for each promise to the user, tried on a real
// cluster: the lab. `make e2e` runs it. Without a lab every test is skipped, so
// that `go test ./...` needs no set-up.
//
// The tests share one Cluster of three where they can, and leave it Ready. While
// they run, a watch sees every change of every Pod and fails the test during
// which two Pods of one Cluster carried the primary's label.
package suite
