package provision

import (
	"context"
	"time"

	"github.com/go-logr/logr"

	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
)

// Origin is where the data of a new instance come from.
type Origin string

// The origins.
const (
	// InitDB makes a new, empty database: the first instance of a Cluster.
	InitDB Origin = "initdb"
	// Join clones the current primary.
	Join Origin = "join"
)

// Layout is where things are on the volumes.
type Layout struct {
	// State is the manager's own directory on the data volume, for the state file and the lock.
	State string
	// Data is the server's data directory; Binlog the directory of its binary and relay logs, empty when
	// they are inside Data.
	Data, Binlog string
}

// Plan is everything that Ensure needs. The functions are called when it needs the answer; those that take a
// context may wait until there is one.
type Plan struct {
	ClusterUID, Instance string
	Layout               Layout
	// Fenced tells that no server is to be started on data that are complete, and none are to be made. Default: no.
	Fenced func(context.Context) bool
	// Origin tells where new data come from, by what the Cluster says.
	Origin func(context.Context) (Origin, error)
	// Accounts are those of a new server, Database its content when it is not a clone.
	Accounts func(context.Context) (Accounts, error)
	Database func(context.Context) (Database, error)
	// Donor is the current primary, with the replication account. It is asked again for each try.
	Donor func(context.Context) (mysql.Source, error)
	// Command is mysqld with its my.cnf, which the function has written: the same as the Supervisor's. To
	// initialise the data directory, options are added at its end.
	Command func(context.Context) (mysqld.Command, error)
	Reaper  *mysqld.Reaper
	// Supervisor runs the server with its final configuration; Server is the connection to it, as the
	// control account.
	Supervisor *mysqld.Supervisor
	Server     *mysql.Server
	// Progress is told what is being done, nil when the data are complete. It must not block.
	Progress func(*protocol.Provision)
	Log      logr.Logger
	// Limit is how long a server may take to initialise, and each start of a new one until it accepts connections;
	// it is asked each time. Default: an hour.
	Limit func() time.Duration
	// Standstill is how long a clone may go without copying a further byte. Default: an hour.
	Standstill time.Duration
	// FirstBackoff and MaxBackoff are the pauses between tries. Defaults: 1 s, 30 s.
	FirstBackoff, MaxBackoff time.Duration
}
