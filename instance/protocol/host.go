package protocol

import "strings"

// HostInstance is the instance that a replication source's host name belongs to: its first label.
func HostInstance(host string) string {
	name, _, _ := strings.Cut(host, ".")
	return name
}
