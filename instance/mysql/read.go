package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

// never stands for a time that has not come, in microseconds.
const never = "4611686018427387903"

// readFacts is one round trip. What was executed is read before what was received: a transaction that is
// applied in between is then in one of them at least.
const readFacts = `SELECT @@global.server_uuid AS uuid, @@global.read_only AS ro, @@global.super_read_only AS sro, @@global.offline_mode AS offline,
 @@global.gtid_executed AS executed, @@global.gtid_purged AS purged;
SELECT SERVICE_STATE AS state, RECEIVED_TRANSACTION_SET AS received, COUNT_RECEIVED_HEARTBEATS AS beats,
 LAST_QUEUED_TRANSACTION AS queued,
 LEAST(
  COALESCE(TIMESTAMPDIFF(MICROSECOND, NULLIF(LAST_HEARTBEAT_TIMESTAMP, 0), NOW(6)), ` + never + `),
  COALESCE(TIMESTAMPDIFF(MICROSECOND, NULLIF(LAST_QUEUED_TRANSACTION_END_QUEUE_TIMESTAMP, 0), NOW(6)), ` + never + `),
  COALESCE(TIMESTAMPDIFF(MICROSECOND, NULLIF(QUEUEING_TRANSACTION_START_QUEUE_TIMESTAMP, 0), NOW(6)), ` + never + `)) AS age
 FROM performance_schema.replication_connection_status WHERE CHANNEL_NAME = '';
` + flavor.ShowReplicaStatus + `;
SHOW GLOBAL VARIABLES WHERE Variable_name LIKE 'rpl\_semi\_sync\_%';
SHOW GLOBAL STATUS WHERE Variable_name LIKE 'Rpl\_semi\_sync\_%'`

// Read reads all facts, in one round trip. A GTID set that cannot be parsed is an error. The stamps of the heartbeat are
// in none of the sets.
func (s *Server) Read(ctx context.Context) (*protocol.MySQL, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	dialect, err := s.dialect(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := s.reader.QueryContext(ctx, readFacts)
	if err != nil {
		return nil, fmt.Errorf("reading the facts: %w", err)
	}
	defer rows.Close()
	m, err := s.readAll(rows, dialect.SemiSync)
	if err != nil {
		return nil, fmt.Errorf("reading the facts: %w", err)
	}
	return m, nil
}

func (s *Server) readAll(rows *sql.Rows, names flavor.SemiSync) (*protocol.MySQL, error) {
	results, err := collect(rows)
	if err != nil {
		return nil, err
	}
	if len(results) != 5 || len(results[0]) != 1 {
		return nil, fmt.Errorf("the server gave %d results", len(results))
	}
	m, err := globals(results[0][0])
	if err != nil {
		return nil, err
	}
	channel := defaultChannel(results[2])
	if channel != nil && len(results[1]) == 1 {
		if m.Replication, err = s.replication(channel, results[1][0]); err != nil {
			return nil, err
		}
	} else if channel != nil {
		return nil, errors.New("the replication channel appeared while it was read")
	}
	m.SemiSync = semiSync(names, results[3], results[4])
	s.heartbeat.split(m)
	return m, nil
}

// collect reads several results, each a list of rows.
func collect(rows *sql.Rows) ([][]map[string]string, error) {
	var out [][]map[string]string
	for {
		var list []map[string]string
		for rows.Next() {
			r, err := row(rows)
			if err != nil {
				return nil, err
			}
			list = append(list, r)
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
		out = append(out, list)
		if !rows.NextResultSet() {
			return out, rows.Err()
		}
	}
}

func globals(r map[string]string) (*protocol.MySQL, error) {
	m := &protocol.MySQL{ServerUUID: r["uuid"], ReadOnly: r["ro"] != "0", SuperReadOnly: r["sro"] != "0", Offline: r["offline"] != "0"}
	var err error
	if m.Executed, err = gtid.Parse(r["executed"]); err != nil {
		return nil, fmt.Errorf("gtid_executed: %w", err)
	}
	if m.Purged, err = gtid.Parse(r["purged"]); err != nil {
		return nil, fmt.Errorf("gtid_purged: %w", err)
	}
	return m, nil
}

// defaultChannel is the row of the one channel that is ours, nil when none is configured.
func defaultChannel(list []map[string]string) map[string]string {
	for _, r := range list {
		if r["Channel_Name"] == "" && r["Source_Host"] != "" {
			return r
		}
	}
	return nil
}

func (s *Server) replication(show, status map[string]string) (*protocol.Replication, error) {
	r := &protocol.Replication{
		SourceHost: show["Source_Host"],
		SourceUUID: show["Source_UUID"],
		IORunning:  show["Replica_IO_Running"] != "No",
		Connected:  status["state"] == "ON",
		SQLRunning: show["Replica_SQL_Running"] == "Yes",
		IOError:    show["Last_IO_Error"],
		SQLError:   show["Last_SQL_Error"],
	}
	var err error
	if r.Received, err = gtid.Parse(status["received"]); err != nil {
		return nil, fmt.Errorf("the received set: %w", err)
	}
	if r.IOErrno, err = strconv.Atoi(show["Last_IO_Errno"]); err != nil {
		return nil, fmt.Errorf("the receiver's error number: %w", err)
	}
	if r.SQLErrno, err = strconv.Atoi(show["Last_SQL_Errno"]); err != nil {
		return nil, fmt.Errorf("the applier's error number: %w", err)
	}
	if text, known := show["Seconds_Behind_Source"]; known {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the seconds behind the source: %w", err)
		}
		r.SecondsBehind = &seconds
	}
	r.HeartbeatAgeMillis, err = s.beats.age(status["age"], status["beats"]+" "+status["queued"], time.Now())
	return r, err
}

func semiSync(n flavor.SemiSync, variables, status []map[string]string) protocol.SemiSync {
	v := map[string]string{}
	for _, list := range [][]map[string]string{variables, status} {
		for _, r := range list {
			v[strings.ToLower(r["Variable_name"])] = r["Value"]
		}
	}
	on := func(name string) bool { return v[strings.ToLower(name)] == "ON" }
	count := func(name string) int {
		i, _ := strconv.Atoi(v[strings.ToLower(name)]) // absent without the plugin: 0
		return i
	}
	missing := func(name string) bool {
		_, known := v[strings.ToLower(name)]
		return !known
	}
	return protocol.SemiSync{
		SourceEnabled:  on(n.SourceEnabled),
		ReplicaEnabled: on(n.ReplicaEnabled),
		SourceMissing:  missing(n.SourceEnabled),
		ReplicaMissing: missing(n.ReplicaEnabled),
		SourceActive:   on(n.StatusSource),
		ReplicaActive:  on(n.StatusReplica),
		Clients:        count(n.StatusClients),
		WaitFor:        count(n.WaitForReplicaCount),
		Waiting:        count(n.StatusWaiting),
	}
}
