package provision_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"cnmsql.co/operator/instance/mysqld"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/provision"
)

// A Pod that is made anew for a fenced instance does not start its server for a moment even.
func TestCompleteDataOfAFencedInstanceAreNotServed(t *testing.T) {
	layout := provision.Layout{State: t.TempDir(), Data: t.TempDir()}
	err := errors.Join(
		provision.WriteState(layout.State, provision.State{ClusterUID: "c", Instance: "c1-2", Stage: provision.Complete}),
		os.WriteFile(filepath.Join(layout.Data, "ibdata1"), nil, 0o600),
	)
	if err != nil {
		t.Fatal(err)
	}
	s := mysqld.NewSupervisor(mysqld.SupervisorOptions{Log: logr.Discard(), Prepare: func(context.Context) (mysqld.Command, error) {
		t.Error("a server is started")
		return mysqld.Command{}, errors.New("not to be started")
	}})
	v, err := provision.Ensure(t.Context(), provision.Plan{
		ClusterUID: "c", Instance: "c1-2", Layout: layout, Supervisor: s, Log: logr.Discard(), Progress: func(*protocol.Provision) {},
		Fenced: func(context.Context) bool { return true },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if st, err := s.Await(ctx, func(st mysqld.State) bool { return st.Server == protocol.ServerFenced }); err != nil {
		t.Errorf("%v: %+v", err, st)
	}
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func TestNoDataAreMadeWhileTheInstanceIsFenced(t *testing.T) { synctest.Test(t, noDataAreMade) }

func noDataAreMade(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := &atomic.Int32{}
	var steps []string
	_, err := provision.Ensure(ctx, provision.Plan{
		ClusterUID: "c", Instance: "c1-2", Layout: provision.Layout{State: t.TempDir(), Data: t.TempDir()},
		Supervisor: mysqld.NewSupervisor(mysqld.SupervisorOptions{Log: logr.Discard()}), Log: logr.Discard(),
		Progress: func(p *protocol.Provision) { steps = append(steps, p.Step) },
		Fenced:   func(context.Context) bool { return asked.Add(1) <= 2 },
		Accounts: func(context.Context) (provision.Accounts, error) {
			if asked.Load() != 3 {
				t.Errorf("data are made after %d questions", asked.Load())
			}
			cancel()
			return provision.Accounts{}, ctx.Err()
		},
	})
	if !errors.Is(err, context.Canceled) || len(steps) < 2 || steps[0] != protocol.StepFenced || steps[1] != protocol.StepFenced {
		t.Errorf("%v; steps %q", err, steps)
	}
}
