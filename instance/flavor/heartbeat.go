package flavor

import (
	"fmt"
	"strconv"
	"time"
)

// HeartbeatSource is the source under which the stamps of the heartbeat are numbered, in every Cluster: the UUID of the
// name https://cnmsql.co/heartbeat. It is no server's. See package mysql on why they have one of their own.
const HeartbeatSource = "29097d16-3f4e-5a7c-9eab-aac8df9156a3"

// The table has the name and the columns that pt-heartbeat gives it, so that tools which know that one read ours, and
// one more: in which generation of the primary role the stamp was written. The columns between stay empty, since a
// position is a GTID here.
const (
	HeartbeatDatabase    = "heartbeat"
	CreateHeartbeatTable = "CREATE TABLE IF NOT EXISTS heartbeat.heartbeat (" +
		"ts varchar(26) CHARACTER SET ascii NOT NULL, server_id int unsigned NOT NULL PRIMARY KEY," +
		" file varchar(255) CHARACTER SET ascii DEFAULT NULL, position bigint unsigned DEFAULT NULL," +
		" relay_master_log_file varchar(255) CHARACTER SET ascii DEFAULT NULL, exec_master_log_pos bigint unsigned DEFAULT NULL," +
		" generation bigint DEFAULT NULL) ENGINE=InnoDB"
	// AddHeartbeatGeneration completes a table that pt-heartbeat made.
	AddHeartbeatGeneration  = "ALTER TABLE heartbeat.heartbeat ADD COLUMN generation bigint DEFAULT NULL"
	CreateHeartbeatDatabase = "CREATE DATABASE IF NOT EXISTS " + HeartbeatDatabase
	// TryHeartbeatTable succeeds when the table has the columns that pt-heartbeat gives it.
	TryHeartbeatTable = "SELECT ts, server_id, file, position FROM heartbeat.heartbeat LIMIT 0"
	ReadHeartbeats    = "SELECT server_id, ts, COALESCE(generation, 0) FROM heartbeat.heartbeat"
	// NumberAutomatically and Rollback end what NumberStamp began.
	NumberAutomatically = "SET SESSION gtid_next = 'AUTOMATIC'"
	Rollback            = "ROLLBACK"
)

// HeartbeatSession are the session variables of a connection that stamps. A stamp is written to the binary log as a
// statement with nothing but constants in it: it does the same on a server that has another row, or none.
var HeartbeatSession = map[string]string{"binlog_format": "'STATEMENT'", "transaction_isolation": "'REPEATABLE-READ'"}

// stampLayout is the time of a stamp, in UTC, as pt-heartbeat --utc writes it.
const stampLayout = "2006-01-02T15:04:05.000000"

// NumberStamp returns the statement that gives the session's next transaction this number.
func NumberStamp(number uint64) string {
	return "SET SESSION gtid_next = '" + HeartbeatSource + ":" + strconv.FormatUint(number, 10) + "'"
}

// Stamp returns the statement that writes a stamp.
func Stamp(serverID uint32, generation int64, at time.Time) string {
	return fmt.Sprintf("REPLACE INTO heartbeat.heartbeat (ts, server_id, generation) VALUES ('%s', %d, %d)",
		at.UTC().Format(stampLayout), serverID, generation)
}

// ParseStamp reads the time of a stamp, of pt-heartbeat's as well when it was told to write UTC.
func ParseStamp(text string) (time.Time, error) {
	at, err := time.Parse("2006-01-02T15:04:05", text) // a fraction of a second is accepted
	if err != nil {
		return time.Time{}, fmt.Errorf("the stamp %.40q is no time", text)
	}
	return at, nil
}
