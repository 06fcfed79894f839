package mysql_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/internal/mysqltest"
	"cnmsql.co/operator/instance/mysql"
)

// all is everything that a server has executed, stamps included.
func all(t testing.TB, s *mysqltest.Server) gtid.Set {
	t.Helper()
	set, err := gtid.Parse(s.Query(t, "SELECT @@global.gtid_executed"))
	must(t, err)
	return set
}

func stamps(t testing.TB, s *mysqltest.Server) gtid.Set {
	t.Helper()
	return all(t, s).BySource(flavor.HeartbeatSource)
}

// stamp writes one after the facts were read, and fails when it does not return.
func stamp(t testing.TB, s *mysqltest.Server, generation int64) {
	t.Helper()
	read(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, s.SQL.Stamp(ctx, generation))
}

// stampOf is a server's stamp as another has applied it.
func stampOf(t testing.TB, of, on *mysqltest.Server) time.Time {
	t.Helper()
	all, err := on.SQL.Stamps(t.Context())
	must(t, err)
	for _, s := range all {
		if s.ServerID == uint32(of.Port) { // its server_id
			return s.At
		}
	}
	return time.Time{}
}

// TestTheHeartbeat goes through the life of the heartbeat of two servers.
func TestTheHeartbeat(t *testing.T) {
	p := newPair(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *pair)
	}{
		{"a stamp reaches the replica and is in no set", aStampReachesTheReplica},
		{"stamps are in UTC", stampsAreInUTC},
		{"the tools read the table", theToolsReadTheTable},
		{"a stamp that waits is ended by a step-down", aWaitingStampIsEndedByAStepDown},
		{"no stamp is begun without a replica", noStampIsBegunWithoutAReplica},
		{"stamps that nobody else has do not part two servers", strayStampsDoNotPart},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.test(t, p) }) {
			return
		}
	}
}

func aStampReachesTheReplica(t *testing.T, p *pair) {
	if found, err := p.a.SQL.Stamps(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("stamps before the first one: %v, %v", found, err)
	}
	begin := time.Now()
	stamp(t, p.a, 1) // makes the table
	before := read(t, p.a)
	stamp(t, p.a, 1)
	stamp(t, p.a, 1)
	if now := read(t, p.a); !now.Executed.Equal(before.Executed) {
		t.Errorf("stamps are in the executed set: %s, before: %s", now.Executed, before.Executed)
	}
	if got, want := stamps(t, p.a).String(), flavor.HeartbeatSource+":1-3"; got != want {
		t.Errorf("stamps %s, want %s", got, want)
	}
	p.Eventually(func() string { return stamps(t, p.b).String() }).WithTimeout(patience).Should(gomega.Equal(stamps(t, p.a).String()))
	m := read(t, p.b)
	for name, set := range map[string]gtid.Set{"executed": m.Executed, "held": m.Held(), "purged": m.Purged} {
		if !set.BySource(flavor.HeartbeatSource).IsEmpty() {
			t.Errorf("stamps are in the %s set: %s", name, set)
		}
	}
	at := stampOf(t, p.a, p.b)
	if at.Before(begin.Add(-time.Millisecond)) || at.After(time.Now()) || !at.Equal(stampOf(t, p.a, p.a)) {
		t.Errorf("the replica has the stamp %s; written from %s on, last %s", at, begin, stampOf(t, p.a, p.a))
	}
	if err := p.b.SQL.Stamp(t.Context(), 1); !errors.Is(err, mysql.ErrReadOnly) {
		t.Errorf("a stamp on a read-only server: %v", err)
	}
	// What it refused is not left half done.
	if err := p.b.SQL.Stamp(t.Context(), 1); !errors.Is(err, mysql.ErrReadOnly) {
		t.Errorf("another one: %v", err)
	}
	if got := p.b.Query(t, "SELECT @@global.gtid_owned"); got != "" {
		t.Errorf("the read-only server keeps %s for a stamp", got)
	}
}

// Whatever the server's time zone is, stamps are in UTC.
func stampsAreInUTC(t *testing.T, p *pair) {
	p.a.Exec(t, "SET GLOBAL time_zone = '+09:00'")
	defer p.a.Exec(t, "SET GLOBAL time_zone = 'SYSTEM'")
	begin := time.Now()
	stamp(t, p.a, 1)
	if at := stampOf(t, p.a, p.a); at.Before(begin.Add(-time.Millisecond)) || at.After(time.Now()) {
		t.Errorf("stamped %s, at %s", at, begin)
	}
}

// The queries are those of pt-heartbeat --check --utc and of mysqld_exporter with its heartbeat collector in UTC.
func theToolsReadTheTable(t *testing.T, p *pair) {
	id := p.a.Query(t, "SELECT @@global.server_id")
	if got := p.b.Query(t, "SELECT ts FROM `heartbeat`.`heartbeat` WHERE server_id='"+id+"' LIMIT 1"); len(got) != 26 || !strings.Contains(got, "T") {
		t.Errorf("ts is %q", got)
	}
	if got := p.b.Query(t, "SELECT UNIX_TIMESTAMP(UTC_TIMESTAMP(6)) - UNIX_TIMESTAMP(ts) BETWEEN 0 AND 600 FROM `heartbeat`.`heartbeat` WHERE server_id="+id); got != "1" {
		t.Errorf("the age is not within ten minutes: %s", got)
	}
	p.b.Exec(t, "SELECT ts, server_id, generation, file, position, relay_master_log_file, exec_master_log_pos FROM heartbeat.heartbeat")
}

func aWaitingStampIsEndedByAStepDown(t *testing.T, p *pair) {
	p.semiSync(t)
	// b stays attached and does not answer: a stamp is begun.
	resume := p.b.Hang(t)
	defer resume()
	ended := make(chan error, 1)
	go func() { ended <- p.a.SQL.Stamp(t.Context(), 1) }()
	p.Eventually(func() int { return read(t, p.a).SemiSync.Waiting }).WithTimeout(patience).Should(gomega.Equal(1))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	must(t, p.a.SQL.Demote(ctx, mysql.DemoteOptions{DrainAfter: 10 * time.Millisecond}))
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the stamp was acknowledged, by nobody")
		}
	case <-time.After(patience):
		t.Error("the stamp still waits")
	}
}

func noStampIsBegunWithoutAReplica(t *testing.T, p *pair) {
	must(t, p.a.SQL.SetSemiSync(t.Context(), true, false, 1))
	must(t, p.a.SQL.OpenWrites(t.Context()))
	must(t, p.b.SQL.StopReplicaIO(t.Context()))
	p.Eventually(func() int { return read(t, p.a).SemiSync.Clients }).WithTimeout(patience).Should(gomega.Equal(0))
	if err := p.a.SQL.Stamp(t.Context(), 1); !errors.Is(err, mysql.ErrUnacknowledged) {
		t.Errorf("a stamp that nobody would acknowledge: %v", err)
	}
	if n := read(t, p.a).SemiSync.Waiting; n != 0 {
		t.Errorf("%d sessions wait", n)
	}
}

// a has stamps that b never saw. b takes the role, while a follows it and is the one that acknowledges: neither is held
// up or stopped by that, and in the end each has all stamps.
func strayStampsDoNotPart(t *testing.T, p *pair) {
	ctx := t.Context()
	must(t, p.a.SQL.SetSemiSync(ctx, false, false, 0))
	must(t, p.a.SQL.OpenWrites(ctx))
	for range 3 {
		stamp(t, p.a, 1)
	}
	must(t, p.a.SQL.SetReadOnly(ctx))
	must(t, p.b.SQL.StopReplica(ctx))
	must(t, p.b.SQL.ResetReplicaAll(ctx))
	stray := stamps(t, p.a).Minus(stamps(t, p.b))
	if stray.Count() < 3 {
		t.Fatalf("a has %s, b %s", stamps(t, p.a), stamps(t, p.b))
	}
	if !read(t, p.a).Held().Equal(read(t, p.b).Held()) {
		t.Fatalf("a holds %s, b %s", read(t, p.a).Held(), read(t, p.b).Held())
	}
	must(t, p.b.SQL.SetSemiSync(ctx, true, false, 1))
	must(t, p.a.SQL.SetSemiSync(ctx, false, true, 0))
	must(t, p.a.Follow(ctx, p.b.Source(p.client)))
	p.Eventually(func() int { return read(t, p.b).SemiSync.Clients }).WithTimeout(patience).Should(gomega.Equal(1))
	must(t, p.b.SQL.OpenWrites(ctx))
	stamp(t, p.b, 2)
	gap := stray.Count() // at least that many numbers are missing on b
	filled := make(chan error, 1)
	go func() {
		n, err := p.b.SQL.FillStamps(ctx)
		if err == nil && uint64(n) < gap {
			err = errors.New("fewer numbers were filled than were missing")
		}
		filled <- err
	}()
	p.Eventually(func() bool {
		stamp(t, p.b, 2)
		return len(filled) == 1
	}).WithTimeout(patience).WithPolling(50 * time.Millisecond).Should(gomega.BeTrue())
	must(t, <-filled)
	p.b.Exec(t, "INSERT INTO app.t (v) VALUES (1)")
	p.caughtUp(t, p.b, p.a)
	if r := read(t, p.a).Replication; r.Broken() || !r.IORunning || !r.SQLRunning {
		t.Errorf("replication %+v", r)
	}
	p.Eventually(func() string { return all(t, p.a).String() }).WithTimeout(patience).Should(gomega.Equal(all(t, p.b).String()))
	if gap := stamps(t, p.b).FirstGap(flavor.HeartbeatSource); gap != 0 {
		t.Errorf("number %d is missing still", gap)
	}
	if got, want := stampOf(t, p.b, p.a), stampOf(t, p.b, p.b); !got.Equal(want) || want.IsZero() {
		t.Errorf("a has b's stamp %s, b %s", got, want)
	}
	if n, err := p.b.SQL.FillStamps(ctx); n != 0 || err != nil {
		t.Errorf("with no gap left %d were filled, %v", n, err)
	}
}

// A table that pt-heartbeat made is taken over, and another one of that name is left alone.
func TestATableOfSomebodyElse(t *testing.T) {
	s := mysqltest.Start(t, "s", mysqltest.Options{})
	must(t, s.SQL.OpenWrites(t.Context()))
	s.Exec(t, "CREATE DATABASE heartbeat", "CREATE TABLE heartbeat.heartbeat (server_id INT PRIMARY KEY, ts TIMESTAMP)")
	if err := s.SQL.Stamp(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "rename it") {
		t.Errorf("a stamp into another table: %v", err)
	}
	if got := s.Query(t, "SELECT COUNT(*) FROM information_schema.columns WHERE table_name = 'heartbeat'"); got != "2" {
		t.Errorf("it has %s columns now", got)
	}
	s.Exec(t, "DROP TABLE heartbeat.heartbeat", `CREATE TABLE heartbeat.heartbeat (ts varchar(26) NOT NULL, server_id int unsigned NOT NULL PRIMARY KEY,
		file varchar(255) DEFAULT NULL, position bigint unsigned DEFAULT NULL, relay_master_log_file varchar(255) DEFAULT NULL, exec_master_log_pos bigint unsigned DEFAULT NULL)`)
	stamp(t, s, 1)
	if stampOf(t, s, s).IsZero() {
		t.Error("there is no stamp")
	}
}
