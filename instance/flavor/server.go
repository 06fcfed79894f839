package flavor

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Flavor is a family of servers with one dialect. Percona Server is MySQL here.
type Flavor string

// The flavors, with the names that the Cluster's flavor field uses.
const (
	MySQL   Flavor = "mysql"
	MariaDB Flavor = "mariadb"
)

// oldest is the first version of MySQL that is supported.
var oldest = Version{8, 0, 26}

// ErrNotSupported is in every error about a server that this operator cannot run.
var ErrNotSupported = errors.New("not supported")

// ErrUnknownVersion is the error for an image whose name does not tell the version of its server.
var ErrUnknownVersion = errors.New("the image name does not tell the server's version")

// HeartbeatPeriod is how often a source that has nothing to send tells its replicas that it is alive.
const HeartbeatPeriod = 2 * time.Second

// Server is a supported flavor in one version. The fields are facts about it; the methods build its statements.
type Server struct {
	Flavor  Flavor
	Version Version

	// SemiSync names the plugins of semi-synchronous replication, their variables and status variables.
	SemiSync SemiSync
	// ClonePlugin is the library of the CLONE plugin.
	ClonePlugin string

	// TaggedGTIDs: transactions may carry a tag, and GTID sets then have a form that older servers cannot read.
	TaggedGTIDs bool
	// CommitOrderPreserved: the applier commits in the source's order and in parallel unless told otherwise. Where it
	// is false, both have to be configured.
	CommitOrderPreserved bool
	// NativePassword: accounts with the old mysql_native_password can log in without further settings.
	NativePassword bool

	// ShowBinaryLogStatus returns the own binary log position and executed set.
	ShowBinaryLogStatus string
	// ResetBinaryLogs deletes all binary logs and empties the executed set.
	ResetBinaryLogs string
}

// SemiSync names the two sides of semi-synchronous replication.
type SemiSync struct {
	SourcePlugin, ReplicaPlugin string // libraries
	// Variables of the source: switched on, milliseconds until a commit goes on without acknowledgements, how many
	// acknowledgements it needs, whether it waits while fewer replicas than that are there, and at which point.
	SourceEnabled, SourceTimeout, WaitForReplicaCount, WaitNoReplica, WaitPoint string
	// ReplicaEnabled is the variable of the replica. A change takes effect when the receiver thread starts.
	ReplicaEnabled string
	// Status variables: replicas connected, whether it is in effect on either side, commits with and without
	// acknowledgement, sessions that wait for one.
	StatusClients, StatusSource, StatusReplica, StatusYes, StatusNo, StatusWaiting string
}

var mysqlSemiSync = SemiSync{
	SourcePlugin:        "semisync_source.so",
	ReplicaPlugin:       "semisync_replica.so",
	SourceEnabled:       "rpl_semi_sync_source_enabled",
	SourceTimeout:       "rpl_semi_sync_source_timeout",
	WaitForReplicaCount: "rpl_semi_sync_source_wait_for_replica_count",
	WaitNoReplica:       "rpl_semi_sync_source_wait_no_replica",
	WaitPoint:           "rpl_semi_sync_source_wait_point",
	ReplicaEnabled:      "rpl_semi_sync_replica_enabled",
	StatusClients:       "Rpl_semi_sync_source_clients",
	StatusSource:        "Rpl_semi_sync_source_status",
	StatusReplica:       "Rpl_semi_sync_replica_status",
	StatusYes:           "Rpl_semi_sync_source_yes_tx",
	StatusNo:            "Rpl_semi_sync_source_no_tx",
	StatusWaiting:       "Rpl_semi_sync_source_wait_sessions",
}

// For returns the server of this flavor and version. The error wraps ErrNotSupported and says what to use instead.
func For(f Flavor, v Version) (Server, error) {
	switch f {
	case MySQL:
	case MariaDB:
		return Server{}, fmt.Errorf("MariaDB %s is %w yet: use MySQL or Percona Server %s or newer", v, ErrNotSupported, oldest)
	default:
		return Server{}, fmt.Errorf("flavor %.40q is %w: use %q", f, ErrNotSupported, MySQL)
	}
	if v.Compare(oldest) < 0 {
		return Server{}, fmt.Errorf("MySQL %s is %w: use %s or newer", v, ErrNotSupported, oldest)
	}
	s := Server{
		Flavor:               MySQL,
		Version:              v,
		SemiSync:             mysqlSemiSync,
		ClonePlugin:          "mysql_clone.so",
		TaggedGTIDs:          v.AtLeast(8, 3, 0),
		CommitOrderPreserved: v.AtLeast(8, 0, 27),
		NativePassword:       !v.AtLeast(8, 4, 0),
		ShowBinaryLogStatus:  "SHOW BINARY LOG STATUS",
		ResetBinaryLogs:      "RESET BINARY LOGS AND GTIDS",
	}
	if !v.AtLeast(8, 2, 0) {
		s.ShowBinaryLogStatus, s.ResetBinaryLogs = "SHOW MASTER STATUS", "RESET MASTER"
	}
	return s, nil
}

// Detect is Parse and For together.
func Detect(text string) (Server, error) {
	f, v, err := Parse(text)
	if err != nil {
		return Server{}, err
	}
	return For(f, v)
}

// images are the repositories, by the last part of their name, whose tags are the version of the server inside.
var images = map[string]Flavor{
	"mysql":            MySQL, // Docker official image
	"mysql-server":     MySQL,
	"community-server": MySQL, // container-registry.oracle.com/mysql
	"percona":          MySQL,
	"percona-server":   MySQL,
	"mariadb":          MariaDB,
}

// ForImage guesses the server from the name of an image, for advice before anything runs. A tag with fewer than three
// numbers stands for the newest release of its series. The error is ErrUnknownVersion for a repository whose tags mean
// nothing to us, and for a tag or digest without a version; it wraps ErrNotSupported for what For refuses.
func ForImage(image string) (Server, error) {
	name, _, _ := strings.Cut(image, "@")
	name = name[strings.LastIndex(name, "/")+1:]
	repository, tag, _ := strings.Cut(name, ":")
	f, known := images[repository]
	if !known {
		return Server{}, ErrUnknownVersion
	}
	if f == MariaDB {
		return Server{}, fmt.Errorf("image %q: MariaDB is %w yet: use MySQL or Percona Server %s or newer", image, ErrNotSupported, oldest)
	}
	v, err := parseNumbers(tag, 1)
	if err != nil {
		return Server{}, ErrUnknownVersion
	}
	s, err := For(f, v)
	if err != nil {
		return Server{}, fmt.Errorf("image %q: %w", image, err)
	}
	return s, nil
}
