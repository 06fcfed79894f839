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

// Accounts are the accounts that every server has.
type Accounts struct {
	// Root is root's password. RootEverywhere lets root log in over the network too.
	Root           string
	RootEverywhere bool
	// Control is the manager's own account, ReplicationSubject what the certificate of the replication
	// account must say, for example /CN=cnmsql-replication.
	Control, Replication Account
	ReplicationSubject   string
}

// Account is a name and a password.
type Account struct{ User, Password string }

// Database is what a new database contains.
type Database struct {
	// Name, CharacterSet and Collation of the database; no database is made when Name is empty.
	Name, CharacterSet, Collation string
	// Owner has all privileges on it.
	Owner Account
	// PostInitSQL are run in order by root.
	PostInitSQL []string
}

// Plan is everything that Ensure needs.
type Plan struct {
	ClusterUID, Instance string
	Layout               Layout
	// Origin tells where new data come from. It is asked only when the volume is empty or was not finished,
	// and waits until the Cluster says so.
	Origin func(context.Context) (Origin, error)
	// Accounts and Database are read when they are needed: the files of Secrets may come later than the Pod.
	Accounts func(context.Context) (Accounts, error)
	Database func(context.Context) (Database, error)
	// Donor is the current primary, with the replication account; it waits while there is none.
	Donor func(context.Context) (mysql.Source, error)
	// Initialise is the command of mysqld with its defaults file (written by the callback) and without the
	// options that Ensure adds to make it initialise its data directory.
	Initialise func(context.Context) (mysqld.Command, error)
	Reaper     *mysqld.Reaper
	// Supervisor runs the server with its final configuration; Server is the connection to it.
	Supervisor *mysqld.Supervisor
	Server     *mysql.Server
	// Progress is told what is being done, nil when all is complete. It must not block.
	Progress func(*protocol.Provision)
	Log      logr.Logger
	// FirstBackoff and MaxBackoff are the pauses between tries. Defaults: 1 s, 30 s.
	FirstBackoff, MaxBackoff time.Duration
}

// Ensure makes sure that the volume holds this instance's data, and starts the server on it. On success the
// Supervisor runs: of new data the server answers already, of data that were complete it may still be
// recovering. It retries by itself, with pauses, until ctx ends or it has to refuse; then the Supervisor is
// stopped. The volume stays locked until the process ends.
func Ensure(ctx context.Context, p Plan) error { return errNotYet }
