package provision_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cnmsql.co/operator/instance/internal/mysqltest"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/provision"
)

// scripted is a plan whose server is a shell script; it needs no real one.
func scripted(t *testing.T, script string) (provision.Plan, *steps) {
	t.Helper()
	dir := t.TempDir()
	server := mysql.Open(mysql.Options{Socket: filepath.Join(dir, "none.sock"), User: "nobody"})
	t.Cleanup(server.Close)
	command := func(context.Context) (mysqld.Command, error) {
		return mysqld.Command{Args: []string{"/bin/sh", "-c", script, "mysqld"}}, nil
	}
	log := mysqltest.Log(t, "scripted")
	told := &steps{}
	return provision.Plan{
		ClusterUID: "cluster", Instance: "c1-1",
		Layout:     provision.Layout{State: filepath.Join(dir, "cnmsql"), Data: filepath.Join(dir, "data")},
		Origin:     func(context.Context) (provision.Origin, error) { return provision.InitDB, nil },
		Accounts:   func(context.Context) (provision.Accounts, error) { return mysqltest.Accounts, nil },
		Database:   func(context.Context) (provision.Database, error) { return provision.Database{}, nil },
		Donor:      func(context.Context) (mysql.Source, error) { return mysql.Source{}, errors.New("no donor") },
		Command:    command,
		Reaper:     mysqltest.Reaper(),
		Supervisor: mysqld.NewSupervisor(mysqld.SupervisorOptions{Reaper: mysqltest.Reaper(), Prepare: command, Ready: server.WaitReady, Log: log}),
		Server:     server, Progress: told.take, Log: log, FirstBackoff: time.Millisecond, MaxBackoff: time.Millisecond,
	}, told
}

// untilAttempt runs a provisioning until it tells its n-th failure, and returns what it told then.
func untilAttempt(t *testing.T, p provision.Plan, n int32) protocol.Provision {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	tell, failed := p.Progress, protocol.Provision{}
	p.Progress = func(w *protocol.Provision) {
		tell(w)
		if w != nil && w.Attempts == n && failed.Attempts == 0 {
			failed = *w
			cancel()
		}
	}
	if _, err := provision.Ensure(ctx, p); !errors.Is(err, context.Canceled) && ctx.Err() == nil {
		t.Fatalf("ended with %v", err)
	}
	if failed.Attempts != n {
		t.Fatalf("no attempt %d failed within %s", n, patience)
	}
	return failed
}

func TestAnInitialisationThatHangsIsEndedAndSaid(t *testing.T) {
	p, _ := scripted(t, "exec sleep 1000")
	p.Limit = func() time.Duration { return 50 * time.Millisecond }
	failed := untilAttempt(t, p, 2)
	if failed.Step != protocol.StepInitialising || !strings.Contains(failed.LastError, "longer than 50ms (spec.maxStartDelay)") {
		t.Errorf("told %+v", failed)
	}
}

func TestANewServerThatNeverAnswersIsEndedAndSaid(t *testing.T) {
	p, _ := scripted(t, `case "$*" in *initialize*) exit 0;; *) exec sleep 1000;; esac`)
	p.Limit = func() time.Duration { return 200 * time.Millisecond }
	failed := untilAttempt(t, p, 1)
	if failed.Step != protocol.StepInitialising || !strings.Contains(failed.LastError, "waiting for the server to start: it has taken longer than 200ms") {
		t.Errorf("told %+v", failed)
	}
	if st := p.Supervisor.State(); st.Pid != 0 {
		t.Errorf("the server is still there: %+v", st)
	}
}

func TestANewServerThatKeepsEndingIsSaidWithWhatHelps(t *testing.T) {
	p, _ := scripted(t, `case "$*" in *initialize*) exit 0;; *) exit 1;; esac`)
	failed := untilAttempt(t, p, 1)
	for _, part := range []string{"the new server does not start", "spec.mysql.parameters", "kubectl logs c1-1 -c mysql"} {
		if !strings.Contains(failed.LastError, part) {
			t.Errorf("%q is not in %q", part, failed.LastError)
		}
	}
}
