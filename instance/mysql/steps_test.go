package mysql_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"cnmsql.co/operator/instance/internal/mysqltest"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/protocol"
)

// pair is a writable primary with a replica that follows it.
type pair struct {
	*gomega.WithT
	a, b   *mysqltest.Server
	client mysqltest.Pair
}

func newPair(t *testing.T) *pair {
	t.Helper()
	pki := mysqltest.NewPKI(t)
	p := &pair{
		WithT:  gomega.NewWithT(t),
		a:      mysqltest.Start(t, "a", mysqltest.Options{PKI: pki}),
		b:      mysqltest.Start(t, "b", mysqltest.Options{PKI: pki}),
		client: pki.Issue(t, "cnmsql-replication"),
	}
	must(t, p.a.SQL.OpenWrites(t.Context()))
	p.a.Exec(t, "CREATE DATABASE app", "CREATE TABLE app.t (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT)")
	must(t, p.b.Follow(t.Context(), p.a.Source(p.client)))
	p.caughtUp(t, p.a, p.b)
	return p
}

// caughtUp waits until the replica has what the source has now.
func (p *pair) caughtUp(t testing.TB, source, replica *mysqltest.Server) {
	t.Helper()
	want := read(t, source).Executed
	p.Eventually(func() bool { return read(t, replica).Executed.Contains(want) }).WithTimeout(patience).Should(gomega.BeTrue())
}

// semiSync makes b acknowledge what a commits.
func (p *pair) semiSync(t testing.TB) {
	t.Helper()
	must(t, p.a.SQL.SetSemiSync(t.Context(), true, false, 1))
	must(t, p.b.SQL.SetSemiSync(t.Context(), false, true, 0))
	p.Eventually(func() int { return read(t, p.a).SemiSync.Clients }).WithTimeout(patience).Should(gomega.Equal(1))
}

// TestTwoServers goes through the life of two servers, each part from where the last one left them.
func TestTwoServers(t *testing.T) {
	p := newPair(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, *pair)
	}{
		{"a replica tells how it stands", aReplicaTellsHowItStands},
		{"semi-sync is switched only where it differs", semiSyncIsSwitchedOnlyWhereItDiffers},
		{"the role moves by hand", theRoleMovesByHand},
		{"a clean stop waits for nobody", aCleanStopWaitsForNobody},
		{"no step on a replica writes a transaction", noStepOnAReplicaWritesATransaction},
	} {
		if !t.Run(part.name, func(t *testing.T) { part.test(t, p) }) {
			return
		}
	}
}

func aReplicaTellsHowItStands(t *testing.T, p *pair) {
	ctx := t.Context()
	state := func() *protocol.Replication { return read(t, p.b).Replication }
	p.Eventually(func() int64 { return state().HeartbeatAgeMillis }).WithTimeout(patience).Should(gomega.BeNumerically(">=", 0))

	t.Run("following", func(t *testing.T) {
		r := state()
		if r.SourceHost != "127.0.0.1" || r.SourceUUID != read(t, p.a).ServerUUID || !r.IORunning || !r.Connected || !r.SQLRunning || r.SecondsBehind == nil || r.Broken() {
			t.Errorf("%+v", r)
		}
		if r.HeartbeatAgeMillis > 5000 {
			t.Errorf("the last sign of life is %d ms old with a heartbeat every 2 s", r.HeartbeatAgeMillis)
		}
	})
	t.Run("its source knows its name", func(t *testing.T) {
		want := p.b.Query(t, "SELECT @@report_host")
		if hosts, err := p.a.SQL.ReplicaHosts(ctx); err != nil || len(hosts) != 1 || hosts[0] != want || want == "" {
			t.Errorf("%q, %v, want %q", hosts, err, want)
		}
		if hosts, err := p.b.SQL.ReplicaHosts(ctx); err != nil || len(hosts) != 0 {
			t.Errorf("nobody follows it: %q, %v", hosts, err)
		}
	})
	t.Run("idle for longer than a heartbeat it still hears its source", func(t *testing.T) {
		beats := func() string {
			return p.b.Query(t, "SELECT COUNT_RECEIVED_HEARTBEATS FROM performance_schema.replication_connection_status")
		}
		before := beats()
		p.Eventually(beats).WithTimeout(patience).ShouldNot(gomega.Equal(before))
		if age := state().HeartbeatAgeMillis; age > 1000 {
			t.Errorf("right after a heartbeat the age is %d ms", age)
		}
	})
	t.Run("received and not applied is held", func(t *testing.T) {
		must(t, p.b.SQL.StopReplica(ctx))
		must(t, p.b.SQL.Execute(ctx, "START REPLICA IO_THREAD"))
		p.a.Exec(t, "INSERT INTO app.t (v) VALUES (1)")
		all := read(t, p.a).Executed
		p.Eventually(func() bool { return read(t, p.b).Held().Contains(all) }).WithTimeout(patience).Should(gomega.BeTrue())
		if err := p.b.Follow(ctx, p.a.Source(p.client)); !errors.Is(err, mysql.ErrReceivedMore) {
			t.Errorf("left its source with something unapplied: %v", err)
		}
		must(t, p.b.SQL.Execute(ctx, "START REPLICA IO_THREAD"))
		m := read(t, p.b)
		if m.Executed.Contains(all) || m.Unapplied().Count() != 1 || m.Replication.SQLRunning {
			t.Errorf("executed %s, unapplied %s", m.Executed, m.Unapplied())
		}
		must(t, p.b.SQL.StopReplicaIO(ctx))
		must(t, p.b.SQL.StartReplicaSQL(ctx))
		p.Eventually(func() bool { return read(t, p.b).Executed.Contains(all) }).WithTimeout(patience).Should(gomega.BeTrue())
		if r := state(); r.IORunning || r.Connected || !r.SQLRunning {
			t.Errorf("with the receiver stopped: %+v", r)
		}
	})
	t.Run("a source that is gone", func(t *testing.T) {
		must(t, p.b.SQL.StartReplica(ctx))
		p.Eventually(func() bool { return state().Connected }).WithTimeout(patience).Should(gomega.BeTrue())
		stop, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		must(t, p.a.Supervisor.Stop(stop))
		p.Eventually(func() bool { return state().Connected }).WithTimeout(patience).Should(gomega.BeFalse())
		p.Eventually(func() int { return state().IOErrno }).WithTimeout(patience).ShouldNot(gomega.BeZero())
		if r := state(); !r.IORunning || r.Broken() || r.IOError == "" {
			t.Errorf("while it tries to connect: %+v", r)
		}
		p.a.Run(t)
		must(t, p.a.SQL.OpenWrites(ctx))
		p.Eventually(func() bool { return state().Connected }).WithTimeout(patience).Should(gomega.BeTrue())
	})
	t.Run("another source is not followed with more than was compared", func(t *testing.T) {
		known := read(t, p.b).Held()
		p.a.Exec(t, "INSERT INTO app.t (v) VALUES (1)")
		p.caughtUp(t, p.a, p.b)
		if err := p.b.SQL.Follow(ctx, p.a.Source(p.client), known); !errors.Is(err, mysql.ErrReceivedMore) {
			t.Errorf("followed: %v", err)
		}
	})
	t.Run("a part of a transaction holds nobody up", func(t *testing.T) {
		must(t, p.b.Follow(ctx, p.a.Source(p.client)))
		aPartArrives(t, p)
		known := read(t, p.b).Held()
		// STOP REPLICA would wait here for a minute.
		must(t, timed(t, "Follow", func() error { return p.b.SQL.Follow(ctx, p.a.Source(p.client), known) }))
		p.caughtUp(t, p.a, p.b)
	})
	t.Run("no channel at all", func(t *testing.T) {
		must(t, p.b.SQL.ResetReplicaAll(ctx))
		if r := state(); r != nil {
			t.Errorf("%+v", r)
		}
		must(t, p.b.SQL.StopReplica(ctx))
		must(t, p.b.Follow(ctx, p.a.Source(p.client)))
	})
}

// aPartArrives commits a large transaction on a and stops b's receiver in the middle of it.
func aPartArrives(t *testing.T, p *pair) {
	t.Helper()
	ctx := t.Context()
	p.a.Exec(t, "CREATE TABLE app.large (id INT PRIMARY KEY, v LONGBLOB)")
	p.caughtUp(t, p.a, p.b)
	received := func() (n int) {
		_, err := fmt.Sscan(p.b.Query(t, "SELECT SUM_NUMBER_OF_BYTES_WRITE FROM performance_schema.file_summary_by_event_name WHERE EVENT_NAME = 'wait/io/file/sql/relaylog'"), &n)
		must(t, err)
		return n
	}
	before := received()
	c, err := p.a.DB(t).Conn(ctx)
	must(t, err)
	defer c.Close()
	committed := later(c, "BEGIN",
		"INSERT INTO app.large SELECT n, REPEAT('x', 8000000) FROM (WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 25) SELECT n FROM s) s",
		"COMMIT")
	p.Eventually(received).WithTimeout(patience).WithPolling(time.Millisecond).Should(gomega.BeNumerically(">", before+10_000_000))
	must(t, p.b.SQL.StopReplicaIO(ctx))
	must(t, <-committed)
	if read(t, p.b).Held().Contains(read(t, p.a).Executed) {
		t.Fatal("all of it had arrived: this shows nothing")
	}
}

func semiSyncIsSwitchedOnlyWhereItDiffers(t *testing.T, p *pair) {
	p.semiSync(t)
	// A receiver that is started anew has another thread.
	receiver := func() string {
		return p.b.Query(t, "SELECT THREAD_ID FROM performance_schema.replication_connection_status")
	}
	before := receiver()
	must(t, p.b.SQL.SetSemiSync(t.Context(), false, true, 0))
	if now := receiver(); now != before {
		t.Errorf("the receiver was restarted for nothing: %s, then %s", before, now)
	}
	must(t, p.b.SQL.SetSemiSync(t.Context(), false, false, 0))
	p.Eventually(receiver).WithTimeout(patience).ShouldNot(gomega.Equal(before))
	p.Eventually(func() int { return read(t, p.a).SemiSync.Clients }).WithTimeout(patience).Should(gomega.BeZero())
	for want := 1; want <= 3; want++ {
		must(t, p.a.SQL.SetSemiSync(t.Context(), true, false, want))
		if got := read(t, p.a).SemiSync.WaitFor; got != want {
			t.Errorf("waits for %d, want %d", got, want)
		}
	}
	must(t, p.a.SQL.SetSemiSync(t.Context(), true, false, 0))
	defer func() { must(t, p.a.SQL.SetSemiSync(t.Context(), false, false, 1)) }()
	if got := read(t, p.a).SemiSync.WaitFor; got != 3 {
		t.Errorf("0 changed the count to %s", fmt.Sprint(got))
	}
}

func theRoleMovesByHand(t *testing.T, p *pair) {
	ctx := t.Context()
	p.semiSync(t)
	p.a.Exec(t, "INSERT INTO app.t (v) VALUES (1)")
	if n := p.a.Query(t, "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Rpl_semi_sync_source_yes_tx'"); n == "0" {
		t.Error("no commit was acknowledged")
	}

	began := time.Now()
	must(t, timed(t, "Demote", func() error { return p.a.SQL.Demote(ctx, mysql.DemoteOptions{DrainAfter: time.Second}) }))
	t.Logf("demoted after %v", time.Since(began))
	if !read(t, p.b).Replication.Connected {
		t.Error("the replica lost its source when clients were refused")
	}
	t.Run("a replica can connect where clients are refused", func(t *testing.T) {
		must(t, p.b.SQL.StopReplicaIO(ctx))
		must(t, p.b.SQL.StartReplica(ctx))
		p.Eventually(func() bool { return read(t, p.b).Replication.Connected }).WithTimeout(patience).Should(gomega.BeTrue())
	})
	handoff := read(t, p.a).Executed
	p.Eventually(func() bool { return read(t, p.b).Executed.Contains(handoff) }).WithTimeout(patience).Should(gomega.BeTrue())
	must(t, timed(t, "StopReplicaIO", func() error { return p.b.SQL.StopReplicaIO(ctx) }))
	must(t, timed(t, "StopReplica", func() error { return p.b.SQL.StopReplica(ctx) }))
	must(t, timed(t, "ResetReplicaAll", func() error { return p.b.SQL.ResetReplicaAll(ctx) }))
	must(t, timed(t, "SetSemiSync", func() error { return p.b.SQL.SetSemiSync(ctx, true, false, 1) }))
	must(t, timed(t, "SetSemiSync", func() error { return p.a.SQL.SetSemiSync(ctx, false, true, 0) }))
	must(t, timed(t, "Follow", func() error { return p.a.Follow(ctx, p.b.Source(p.client)) }))
	must(t, timed(t, "OpenWrites", func() error { return p.b.SQL.OpenWrites(ctx) }))
	t.Logf("moved after %v", time.Since(began))

	p.b.Exec(t, "INSERT INTO app.t (v) VALUES (2)") // answered only with an acknowledgement of a
	p.caughtUp(t, p.b, p.a)
	a, b := read(t, p.a), read(t, p.b)
	if a.SemiSync.SourceEnabled || !a.SemiSync.ReplicaEnabled || !a.SemiSync.ReplicaActive || a.Writable() {
		t.Errorf("the former primary: %+v", a)
	}
	if !b.SemiSync.SourceEnabled || b.SemiSync.ReplicaEnabled || !b.SemiSync.SourceActive || b.SemiSync.WaitFor != 1 || b.SemiSync.Clients != 1 || !b.Writable() {
		t.Errorf("the new primary: %+v", b)
	}
	if !a.Executed.Equal(b.Executed) {
		t.Errorf("a has %s, b has %s", a.Executed, b.Executed)
	}
	const rows = "SELECT GROUP_CONCAT(v ORDER BY id) FROM app.t"
	if had, has := p.b.Query(t, rows), p.a.Query(t, rows); had != has || had == "" {
		t.Errorf("rows %s on the former primary, %s on the new one", has, had)
	}

	t.Run("a certificate is exchanged without a restart", func(t *testing.T) {
		before := p.a.Query(t, "SELECT VALUE FROM performance_schema.tls_channel_status WHERE PROPERTY = 'Ssl_server_not_after' AND CHANNEL = 'mysql_main'")
		p.a.PKI.Renew(t, "a", 48*time.Hour)
		must(t, p.a.SQL.ReloadTLS(ctx))
		after := p.a.Query(t, "SELECT VALUE FROM performance_schema.tls_channel_status WHERE PROPERTY = 'Ssl_server_not_after' AND CHANNEL = 'mysql_main'")
		if before == after {
			t.Errorf("the certificate is still valid until %s", after)
		}
		p.a.PKI.Spoil(t, "a")
		if err := p.a.SQL.ReloadTLS(ctx); err == nil {
			t.Error("a broken certificate was loaded")
		}
		if now := p.a.Query(t, "SELECT VALUE FROM performance_schema.tls_channel_status WHERE PROPERTY = 'Ssl_server_not_after' AND CHANNEL = 'mysql_main'"); now != after {
			t.Errorf("a broken certificate replaced the good one: %s", now)
		}
		p.a.PKI.Renew(t, "a", 48*time.Hour)
	})
}

func noStepOnAReplicaWritesATransaction(t *testing.T, p *pair) {
	ctx := t.Context()
	replica := p.a.SQL
	source := p.b.Source(p.client)
	steps := []struct {
		name string
		do   func() error
	}{
		{"Read", func() error { _, err := replica.Read(ctx); return err }},
		{"Ping", func() error { return replica.Ping(ctx) }},
		{"WaitReady", func() error { return replica.WaitReady(ctx) }},
		{"Version", func() error { _, err := replica.Version(ctx); return err }},
		{"SetReadOnly", func() error { return replica.SetReadOnly(ctx) }},
		{"KillClients", func() error { return replica.KillClients(ctx) }},
		{"Demote", func() error { return replica.Demote(ctx, mysql.DemoteOptions{}) }},
		{"StopReplicaIO", func() error { return replica.StopReplicaIO(ctx) }},
		{"StopReplica", func() error { return replica.StopReplica(ctx) }},
		{"StartReplicaSQL", func() error { return replica.StartReplicaSQL(ctx) }},
		{"StartReplica", func() error { return replica.StartReplica(ctx) }},
		{"SetSemiSync off", func() error { return replica.SetSemiSync(ctx, false, false, 0) }},
		{"SetSemiSync on", func() error { return replica.SetSemiSync(ctx, false, true, 1) }},
		{"ReloadTLS", func() error { return replica.ReloadTLS(ctx) }},
		{"Follow", func() error { return p.a.Follow(ctx, source) }},
		{"ResetReplicaAll", func() error { return replica.ResetReplicaAll(ctx) }},
		{"Follow after a reset", func() error { return p.a.Follow(ctx, source) }},
		{"CloneStatus", func() error { _, _, err := replica.CloneStatus(ctx); return err }},
		{"CloneProgress", func() error { _, _, err := replica.CloneProgress(ctx); return err }},
		{"CloneDropped", func() error { _, err := replica.CloneDropped(ctx); return err }},
		{"PartialRevokes", func() error { _, err := replica.PartialRevokes(ctx); return err }},
	}
	before := read(t, p.a).Executed
	for _, s := range steps {
		for range 2 { // a step may be repeated
			if err := s.do(); err != nil {
				t.Fatalf("%s: %v", s.name, err)
			}
		}
		if now := read(t, p.a).Executed; !now.Equal(before) {
			t.Fatalf("%s made transactions: %s", s.name, now.Minus(before))
		}
	}
	// The test can fail: a FLUSH that is not LOCAL does make one.
	p.a.Exec(t, "FLUSH TABLES")
	if read(t, p.a).Executed.Equal(before) {
		t.Error("not even FLUSH TABLES made a transaction: what does this test test?")
	}
}

// timed logs how long a step takes.
func timed(t *testing.T, what string, do func() error) error {
	t.Helper()
	began := time.Now()
	err := do()
	t.Logf("%s took %v", what, time.Since(began))
	return err
}
