package flavor

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Thread is a part of a replica that can be started and stopped by itself.
type Thread string

// The threads of a replica.
const (
	BothThreads Thread = ""
	Receiver    Thread = " IO_THREAD"
	Applier     Thread = " SQL_THREAD"
)

// Statements that are the same in every supported version.
const (
	ShowReplicaStatus = "SHOW REPLICA STATUS"
	ShowReplicas      = "SHOW REPLICAS"
	ReloadTLS         = "ALTER INSTANCE RELOAD TLS"
	// CloseForWrites also sets read_only.
	CloseForWrites = "SET GLOBAL super_read_only = ON"
	// OpenForWrites clears both: super_read_only = OFF alone leaves read_only as it is.
	OpenForWrites = "SET GLOBAL super_read_only = OFF, GLOBAL read_only = OFF"
	// RefuseClients ends the sessions of accounts without the privilege CONNECTION_ADMIN and lets none begin.
	RefuseClients = "SET GLOBAL offline_mode = ON"
	AdmitClients  = "SET GLOBAL offline_mode = OFF"
)

// What the server accepts in a replication account, in bytes of UTF-8. Longer passwords are possible for an account, but
// no replica could use them.
const (
	MaxReplicationUser     = 96
	MaxReplicationPassword = 32
	maxHost                = 255
	reconnectAttempts      = 100_000_000 // one a second: three years
)

// Source is what a replica needs to follow another server over TLS with a client certificate. The paths are those of
// files on the replica; CA must have signed the source's certificate, whose names must include Host.
type Source struct {
	Host           string
	Port           uint16
	User, Password string
	CA, Cert, Key  string
}

// ChangeSource returns the statement that points a stopped replica at a source, by GTID. What was received and is not
// applied is deleted with the relay log. It retries each second and, as good as forever, does not give up: a receiver that has given up
// reports a stopped replica for a source that is long back.
func (s Server) ChangeSource(to Source) (string, error) {
	return s.changeSource(to, "SOURCE_AUTO_POSITION = 1")
}

// MoveSource is ChangeSource for a replica by GTID whose receiver is stopped and whose applier runs. The relay log stays,
// and the applier forgets a transaction of which the former source had sent a part.
func (s Server) MoveSource(to Source) (string, error) { return s.changeSource(to) }

func (s Server) changeSource(to Source, further ...string) (string, error) {
	for _, f := range []struct {
		what, text string
		limit      int
	}{
		{"host", to.Host, maxHost},
		{"user", to.User, MaxReplicationUser},
		{"password", to.Password, MaxReplicationPassword},
		{"CA file", to.CA, 511},
		{"certificate file", to.Cert, 511},
		{"key file", to.Key, 511},
	} {
		if err := checkText(f.text, f.limit); err != nil {
			return "", fmt.Errorf("replication source: %s %w", f.what, err)
		}
	}
	if to.Port == 0 {
		return "", errors.New("replication source: port is missing")
	}
	options := []string{
		"SOURCE_HOST = " + Quote(to.Host),
		fmt.Sprintf("SOURCE_PORT = %d", to.Port),
		"SOURCE_USER = " + Quote(to.User),
		"SOURCE_PASSWORD = " + Quote(to.Password),
		"SOURCE_SSL = 1",
		"SOURCE_SSL_CA = " + Quote(to.CA),
		"SOURCE_SSL_CERT = " + Quote(to.Cert),
		"SOURCE_SSL_KEY = " + Quote(to.Key),
		"SOURCE_SSL_VERIFY_SERVER_CERT = 1",
		"SOURCE_CONNECT_RETRY = 1",
		fmt.Sprintf("SOURCE_RETRY_COUNT = %d", reconnectAttempts),
		fmt.Sprintf("SOURCE_HEARTBEAT_PERIOD = %g", HeartbeatPeriod.Seconds()),
	}
	return "CHANGE REPLICATION SOURCE TO " + strings.Join(append(options, further...), ", "), nil
}

// checkText does not repeat the text: it may be a password.
func checkText(text string, limit int) error {
	switch {
	case text == "":
		return errors.New("is missing")
	case len(text) > limit:
		return fmt.Errorf("is longer than the %d bytes that the server accepts", limit)
	case !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\r\n"):
		return errors.New("has a line break or is no UTF-8 text")
	}
	return nil
}

// StartReplica returns the statement that starts threads.
func (s Server) StartReplica(t Thread) string { return "START REPLICA" + string(t) }

// StopReplica returns the statement that stops threads.
func (s Server) StopReplica(t Thread) string { return "STOP REPLICA" + string(t) }

// ResetReplica returns the statement that deletes all relay logs, received transactions that were not applied included.
// With all set it forgets the source of the default channel, the only one that is ours, as well. The replica must be stopped.
func (s Server) ResetReplica(all bool) string {
	if all {
		return "RESET REPLICA ALL FOR CHANNEL ''"
	}
	return "RESET REPLICA"
}

// SetGlobal returns the statement that sets a global variable for as long as the server runs. The value is SQL: a
// number, ON, OFF, or what Quote returns.
func SetGlobal(variable, value string) string {
	return "SET GLOBAL " + Identifier(variable) + " = " + value
}

// Quote returns text as a string literal. It is exact for any text in a session without NO_BACKSLASH_ESCAPES.
func Quote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `''`, "\x00", `\0`, "\n", `\n`, "\r", `\r`, "\x1a", `\Z`).Replace(text) + "'"
}

// Identifier returns name as a quoted identifier.
func Identifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
