package manager

import (
	"os"
	"path/filepath"
	"time"

	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/provision"
)

// Config is everything that the manager is told from outside.
type Config struct {
	// Cluster, Namespace and ClusterUID are of the Cluster, Instance is the instance's name, PodUID its Pod's.
	Cluster, Namespace, ClusterUID string
	Instance, PodUID               string
	// MemoryLimit is in bytes, 0 without a limit.
	MemoryLimit uint64
	// Grace is the Pod's termination grace period, 0 when it is not known.
	Grace time.Duration
	// Version is the manager's own.
	Version string
	Paths   Paths
	// Listen is the address that the manager's servers listen on; empty for all.
	Listen string
	// Mysqld is the server's program with these arguments, of which the first is the option file.
	Mysqld func(args ...string) mysqld.Command
	// Watchdog is the program of the dead man's switch; nil for none.
	Watchdog func() mysqld.Command
}

// Paths are where things are in the container.
type Paths struct {
	// Data is the data volume, Binlog the second one, which exists only where it is mounted.
	Data, Binlog string
	// Run is for the socket and my.cnf, Tmp for the server's temporary files.
	Run, Tmp string
	// ServerTLS and Replication hold tls.crt, tls.key and ca.crt; Credentials a directory for each account.
	ServerTLS, Replication, Credentials string
}

func (p Paths) socket() string { return filepath.Join(p.Run, "mysql.sock") }

// layout is where things are on the volumes; a second volume holds the binary logs.
func (p Paths) layout() provision.Layout {
	l := provision.Layout{
		State:  filepath.Join(p.Data, "cnmsql"),
		Data:   filepath.Join(p.Data, "data"),
		Binlog: filepath.Join(p.Data, "binlog"),
	}
	if p.binlogVolume() {
		l.Binlog = filepath.Join(p.Binlog, "log")
	}
	return l
}

// binlogVolume tells that the binary logs have a volume of their own.
func (p Paths) binlogVolume() bool {
	info, err := os.Stat(p.Binlog)
	return err == nil && info.IsDir()
}
