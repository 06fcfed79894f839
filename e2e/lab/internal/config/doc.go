// Package config says where everything in the lab is: the names and addresses
// of nodes, pods and services, and the configuration files of the programs
// that run on a node.
//
// It is pure: it reads only the files embedded in it. It may import the
// standard library alone.
package config
