package main

import (
	"fmt"
	"strings"
)

// commands are all subcommands in the order in which help lists them.
func commands() []command {
	return []command{
		{"build", "[--refresh-mysql] [--prune]", "build what the lab runs, into the cache", 0, 2, buildCommand},
		{"up", "[--nodes N] [--without-cert-manager] [--volumes MIB] [--restart-delay TIME] [--proxy-sync TIME]", "bring the cluster up", 0, -1, up},
		{"down", "[--logs DIR]", "end it and leave nothing behind, also after a crash", 0, 2, down},
		{"status", "", "say what runs", 0, 0, status},
		{"kubeconfig", "", "print the path of a kubeconfig for any client on this machine", 0, 0, kubeconfig},
		{"kubectl", "ARGS...", "kubectl on the cluster", 0, -1, kubectl},
		{"exec", "cp|nX CMD...", "run a command in the namespaces of the control plane or of a node", 2, -1, execIn},
		{"cut", "nX [--from api|peers]", "unplug a node's network, or keep it from the apiserver or from the other nodes alone", 1, 3, cut},
		{"heal", "nX", "undo all cuts of a node", 1, 1, nodeCommand("heal")},
		{"kill", "nX", "end a node as a power cut does", 1, 1, nodeCommand("kill")},
		{"start", "nX", "start a killed node", 1, 1, nodeCommand("start")},
		{"forward", "LISTEN TARGET", "lead a port of this machine to HOST:PORT in the lab, until interrupted", 2, 2, forward},
		{"load", "IMAGE.tar...", "import docker archives into every node", 1, -1, load},
		{"image", "[--user U[:G]] [--label K=V]... OUT.tar TAG ENTRYPOINT DEST=SRC|DEST->TARGET...", "write a docker archive", 3, -1, imageCommand},
		{"mysql-root", "", "print the path of MySQL's root filesystem", 0, 0, mysqlRoot},
	}
}

func printHelp(args []string) error {
	if len(args) > 1 {
		c, err := find(args[1])
		if err != nil {
			return err
		}
		fmt.Printf("lab %s %s\n\n%s%s.\n", c.name, c.args, strings.ToUpper(c.help[:1]), c.help[1:])
		return nil
	}
	fmt.Print("lab runs a small real Kubernetes cluster on this machine.\n\n")
	for _, c := range commands() {
		fmt.Printf("  lab %s\n        %s\n", strings.TrimSpace(c.name+" "+c.args), c.help)
	}
	fmt.Print(`
A machine has one lab at most. LAB_DIR names its state directory (default
/var/tmp/cnmsql-lab), CNMSQL_CACHE that of everything built (default
~/.cache/cnmsql). Both up and build do nothing that is done already.
`)
	return nil
}
