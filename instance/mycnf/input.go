package mycnf

import (
	"errors"
	"fmt"
	"strings"

	"cnmsql.co/operator/instance/flavor"
)

// Input is all that an option file depends on. Paths are absolute.
type Input struct {
	Server       flavor.Server
	InstanceName string // for the heading only
	ServerID     uint32 // not 0, different for each instance
	ReportHost   string // the name under which others reach this instance
	Port         uint16

	DataDir string
	// BinlogDir holds the binary and relay logs. It may be on a volume of its own.
	BinlogDir  string
	SocketPath string
	PidFile    string
	TmpDir     string
	// ErrorLog is a file, or empty for standard error.
	ErrorLog string
	// TLS may be left out as a whole, for a server that nobody reaches through the network.
	TLS TLS

	SemiSync SemiSync
	// BinlogFormat is ROW, MIXED or STATEMENT; empty means ROW.
	BinlogFormat string
	// MemoryLimitBytes is what the server may use in all, 0 when there is no limit.
	MemoryLimitBytes uint64

	// Parameters are the user's settings, as Check accepts them.
	Parameters map[string]string
	// AdditionalFiles are further option files of the user, content by name. They follow the parameters, in order of
	// their names.
	AdditionalFiles map[string]string
}

// TLS names the files of the server's certificate.
type TLS struct {
	CA, Cert, Key string
}

// SemiSync configures semi-synchronous replication. Both sides are off when the server starts, and both plugins are
// loaded whether or not it is enabled: that only tells what must be on disk at a commit.
type SemiSync struct {
	Enabled bool
	// TimeoutMillis is how long a commit waits for acknowledgements before it goes on without, at least 1.
	TimeoutMillis int64
	// WaitForReplicaCount is how many acknowledgements a commit needs, at least 1.
	WaitForReplicaCount int
}

// validate returns everything that is wrong with the input itself, apart from the user's settings.
func (in Input) validate() error {
	var errs []error
	fail := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fail(in.Server == (flavor.Server{}), "the server's flavor and version are missing")
	fail(in.ServerID == 0, "the server id is 0")
	fail(in.Port == 0, "the port is 0")
	fail(badText(in.ReportHost) || in.ReportHost == "", "the report host %q is empty or has control characters", in.ReportHost)
	fail(badText(in.InstanceName), "the instance name %q has control characters", in.InstanceName)
	for _, p := range []struct{ what, path string }{
		{"data directory", in.DataDir}, {"binary log directory", in.BinlogDir}, {"socket", in.SocketPath},
		{"pid file", in.PidFile}, {"temporary directory", in.TmpDir},
	} {
		fail(!isPath(p.path), "the %s %q is no absolute path", p.what, p.path)
	}
	fail(in.ErrorLog != "" && !isPath(in.ErrorLog), "the error log %q is no absolute path", in.ErrorLog)
	if in.TLS != (TLS{}) {
		fail(!isPath(in.TLS.CA) || !isPath(in.TLS.Cert) || !isPath(in.TLS.Key), "TLS needs the absolute paths of CA, certificate and key, got %+v", in.TLS)
	}
	fail(in.SemiSync.TimeoutMillis < 1, "the semi-sync timeout is %d ms", in.SemiSync.TimeoutMillis)
	fail(in.SemiSync.WaitForReplicaCount < 1, "semi-sync waits for %d replicas", in.SemiSync.WaitForReplicaCount)
	switch in.BinlogFormat {
	case "", "ROW", "MIXED", "STATEMENT":
	default:
		fail(true, "the binary log format %q is none of ROW, MIXED, STATEMENT", in.BinlogFormat)
	}
	return errors.Join(errs...)
}

func isPath(p string) bool { return strings.HasPrefix(p, "/") && !badText(p) && len(p) < maxLine/2 }

func (in Input) binlogFormat() string {
	if in.BinlogFormat == "" {
		return "ROW"
	}
	return in.BinlogFormat
}
