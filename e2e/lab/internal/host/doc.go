// Package host handles what the lab shares with the machine it runs on: the
// cgroup trees, the settings that a kubelet changes for the whole machine, and
// mounts. All of it is given back by down, also after a crash.
//
// It may import the standard library, config and state.
package host
