package mycnf_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cnmsql.co/operator/instance/gtid"
)

// crashReplica crashes the replica and takes the source away.
func (p *pair) crashReplica(t *testing.T, tr trial) outcome {
	t.Helper()
	d := p.blank.copy(t)
	defer d.remove()
	replica := p.start(t, p.replica, tr)
	defer func() { replica.kill() }()
	p.connect(t)
	defer p.wire.cut()
	if !tr.applies {
		p.replica.query(t, "STOP REPLICA SQL_THREAD")
	}
	writers := startClients(t, p.source, 4, false)
	defer writers.end()
	p.awaitAcks(t, writers)

	crashServer(t, tr.crash, replica, d)
	// A transaction is executed on the source only when it was acknowledged.
	acked, rows := p.settled(t), writers.close()
	p.disconnect(t)
	writers.end()

	replica = p.start(t, p.replica, tr)
	held := p.replica.held(t)
	trouble := p.applyAll(t, held)
	return outcome{acked.Count(), acked.Minus(held).Count(), len(rows), len(p.replica.missing(t, rows)), trouble}
}

// crashSource crashes the source and asks it what it has, while the replica has everything.
func (p *pair) crashSource(t *testing.T, tr trial) outcome {
	t.Helper()
	d := p.blank.copy(t)
	defer d.remove()
	source := p.start(t, p.source, tr)
	defer func() { source.kill() }()
	p.connect(t)
	defer p.wire.cut()
	writers := startClients(t, p.source, 4, false)
	defer writers.end()
	p.awaitAcks(t, writers)

	crashServer(t, tr.crash, source, d)
	p.wire.cut()
	writers.end() // takes what was answered before the crash
	rows, acked := writers.close(), p.replica.held(t)

	source = p.start(t, p.source, tr)
	held := p.source.set(t, executedSet)
	return outcome{acked.Count(), acked.Minus(held).Count(), len(rows), len(p.source.missing(t, rows)), ""}
}

func (p *pair) start(t *testing.T, s *realServer, tr trial) *running {
	t.Helper()
	// One that was killed in another PID namespace leaves a number that means another process here.
	_ = os.Remove(s.in.SocketPath + ".lock")
	var options []string
	for _, o := range tr.options {
		options = append(options, "--"+o)
	}
	if tr.crash == containerKilled {
		return s.startContained(t, options...)
	}
	return s.start(t, options...)
}

// awaitAcks lets the clients write for a while.
func (p *pair) awaitAcks(t *testing.T, w *clients) {
	t.Helper()
	const long, enough = 1500 * time.Millisecond, 40
	begin := time.Now()
	for deadline := begin.Add(3 * time.Minute); time.Since(begin) < long || w.count() < enough; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("only %d writes were acknowledged", w.count())
		}
	}
}

// crashServer ends a server in the midst of its work.
func crashServer(t *testing.T, c crash, r *running, d *disk) {
	t.Helper()
	pid := r.cmd.Process.Pid
	target := pid
	if c == containerKilled {
		target = -pid
	}
	// All threads stand still at one moment, so that nothing is acknowledged after it.
	if err := syscall.Kill(target, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	awaitStopped(t, pid)
	if c == powerLost {
		d.stop(t)
	}
	r.kill() // the first process of a container takes all others with it
	if c == powerLost {
		d.comeBack(t)
	}
}

// awaitStopped waits until no thread of a process runs.
func awaitStopped(t *testing.T, pid int) {
	t.Helper()
	still := func() bool {
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			t.Fatal(err)
		}
		return !slices.ContainsFunc(tasks, func(e os.DirEntry) bool {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, e.Name()))
			_, rest, _ := strings.Cut(string(stat), ") ")
			return err == nil && !strings.HasPrefix(rest, "T")
		})
	}
	for deadline := time.Now().Add(time.Minute); !still(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the server does not stand still")
		}
	}
}

// settled is what the source has executed when no acknowledgement is on its way any more.
func (p *pair) settled(t *testing.T) gtid.Set {
	t.Helper()
	for set, deadline := p.source.set(t, executedSet), time.Now().Add(10*time.Second); ; {
		time.Sleep(100 * time.Millisecond) // the time in which an answer that is on its way arrives
		now := p.source.set(t, executedSet)
		if now.Equal(set) {
			return now
		}
		if set = now; time.Now().After(deadline) {
			t.Fatal("the source goes on without an acknowledgement")
		}
	}
}

// applyAll starts the applier alone and waits until it has executed a set or has stopped.
func (p *pair) applyAll(t *testing.T, set gtid.Set) (trouble string) {
	t.Helper()
	p.replica.query(t, "START REPLICA SQL_THREAD")
	const failed = `SELECT CONCAT(last_error_number, ' ', last_error_message) FROM performance_schema.replication_applier_status_by_coordinator WHERE last_error_number > 0
		UNION ALL SELECT CONCAT(last_error_number, ' ', last_error_message) FROM performance_schema.replication_applier_status_by_worker WHERE last_error_number > 0 LIMIT 1`
	deadline := time.Now().Add(3 * time.Minute)
	for ; time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if trouble := p.replica.query(t, failed); trouble != "" {
			return trouble
		}
		if p.replica.set(t, executedSet).Contains(set) {
			break
		}
	}
	if !time.Now().Before(deadline) {
		return "does not get on: " + p.replica.query(t, "SHOW REPLICA STATUS")
	}
	// As a promotion does.
	begin := time.Now()
	p.replica.query(t, "STOP REPLICA")
	if took := time.Since(begin); took > 2*time.Second {
		return fmt.Sprintf("stopping the applier took %v", took)
	}
	return ""
}

// missing are the rows that are not there.
func (s *realServer) missing(t *testing.T, rows []int64) []int64 {
	t.Helper()
	there := map[string]bool{}
	for id := range strings.FieldsSeq(s.query(t, "SELECT id FROM d.t")) {
		there[id] = true
	}
	return slices.DeleteFunc(slices.Clone(rows), func(id int64) bool { return there[strconv.FormatInt(id, 10)] })
}
