// Package inside is what runs in the lab's own namespaces.
//
// The root is PID 1 of a PID namespace. It owns the bridge that stands for the
// network and keeps etcd, the apiserver, the controller manager, the scheduler
// and a kube-proxy running; through the last one it reaches Services. Each node
// is a child of the root and PID 1 of namespaces nested in the root's; it keeps
// containerd, the kubelet and its kube-proxy running. There is no cable to the
// machine's own network: no packet can leave, and the only way in is the root's
// control socket. Killing the root ends all of it in one step.
//
// It may import the standard library, config, host, pipe, proc and
// state.
package inside
