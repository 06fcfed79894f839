package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"cnmsql.co/operator/e2e/framework"
	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/gtid"
)

// Statements of the script.
const (
	closeWrites  = "SET GLOBAL super_read_only = ON"
	openWrites   = "SET GLOBAL super_read_only = OFF, GLOBAL read_only = OFF"
	awaitApplied = "SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 4)"
	executed     = "SELECT @@GLOBAL.gtid_executed"
	received     = "SELECT COALESCE(MAX(received_transaction_set), '') FROM performance_schema.replication_connection_status"
	// sleep ends before a connection's read would.
	sleep = "DO SLEEP(4)"
)

// follow makes a server, whatever it was, a replica of another.
func (s *script) follow(ctx context.Context, name, source string) error {
	return s.exec(ctx, name, closeWrites, "STOP REPLICA",
		"SET GLOBAL rpl_semi_sync_source_enabled = OFF", "SET GLOBAL rpl_semi_sync_replica_enabled = ON",
		s.changeSource(source), "START REPLICA")
}

// repoint makes a replica follow another server.
func (s *script) repoint(ctx context.Context, name, source string) error {
	return s.exec(ctx, name, "STOP REPLICA", s.changeSource(source), "START REPLICA")
}

func (s *script) changeSource(source string) string {
	return fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = %s, SOURCE_PORT = 3306, SOURCE_USER = 'repl', SOURCE_PASSWORD = %s, SOURCE_AUTO_POSITION = 1, "+
		"SOURCE_SSL = 1, SOURCE_CONNECT_RETRY = 1, SOURCE_RETRY_COUNT = 100000, SOURCE_HEARTBEAT_PERIOD = 2", flavor.Quote(host(source)), flavor.Quote(s.password))
}

// open makes a server that follows nobody writable.
func (s *script) open(ctx context.Context, name string) error {
	return s.exec(ctx, name, "SET GLOBAL rpl_semi_sync_source_enabled = ON", openWrites)
}

// promote ends a server's following and opens it for writes.
func (s *script) promote(ctx context.Context, t *timeline, name string) error {
	err := timed(t, "STOP REPLICA, RESET REPLICA ALL on "+name, func() error {
		return s.exec(ctx, name, "STOP REPLICA", "RESET REPLICA ALL")
	})
	if err != nil {
		return err
	}
	return timed(t, "semi-sync on, writes open on "+name, func() error { return s.open(ctx, name) })
}

// applied waits until a server has executed a set.
func (s *script) applied(ctx context.Context, t *timeline, name, set string) error {
	return timed(t, "applied everything on "+name, func() error {
		late, err := query[int](ctx, s.admin[name], awaitApplied, set)
		if err == nil && late != 0 {
			err = errors.New("time is up")
		}
		return err
	})
}

// switchOver moves the role from the primary to another.
func (s *script) switchOver(ctx context.Context, t *timeline, primary, other string) error {
	var set string
	third := s.others(primary, other)[0]
	for _, step := range []func() error{
		func() error {
			return timed(t, "super_read_only on "+primary, func() error { return s.exec(ctx, primary, closeWrites) })
		},
		func() (err error) { set, err = query[string](ctx, s.admin[primary], executed); return err },
		func() error {
			return timed(t, "label off "+primary, func() error { return s.label(ctx, primary, roleReplica) })
		},
		func() error { return s.applied(ctx, t, other, set) },
		func() error { return s.promote(ctx, t, other) },
		func() error {
			return timed(t, "label on "+other, func() error { return s.label(ctx, other, rolePrimary) })
		},
		func() error {
			return timed(t, third+" follows", func() error { return s.repoint(ctx, third, other) })
		},
		func() error {
			return timed(t, primary+" follows", func() error { return s.follow(ctx, primary, other) })
		},
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// failOver ends the primary and promotes the replica that has most, from the moment in which a connection that is open to
// it breaks. bringBack waits until there is a server again, which then joins the others.
func (s *script) failOver(end func(ctx context.Context, pod string) error, bringBack func(ctx context.Context, name string) error) func(context.Context, *timeline, string, string) error {
	return func(ctx context.Context, t *timeline, primary, _ string) error {
		ended := make(chan error, 1)
		go func() { ended <- end(ctx, primary) }()
		if err := s.awaitDeath(ctx, primary, ended); err != nil {
			return err
		}
		t.add("script", "%s is dead", primary)
		err := timed(t, "label off "+primary, func() error { return s.label(ctx, primary, roleReplica) })
		if err != nil {
			return err
		}
		best, err := s.succeed(ctx, t, primary)
		if err != nil {
			return err
		}
		if err := <-ended; err != nil {
			return err
		}
		if err := bringBack(ctx, primary); err != nil {
			return err
		}
		return timed(t, primary+" is back and follows", func() error { return s.rejoin(ctx, primary, best) })
	}
}

// succeed makes the best replica the primary, and the other one follow it.
func (s *script) succeed(ctx context.Context, t *timeline, dead string) (best string, err error) {
	best, third, set, err := s.elect(ctx, t, dead)
	if err != nil {
		return "", err
	}
	for _, step := range []func() error{
		func() error { return s.applied(ctx, t, best, set) },
		func() error { return s.promote(ctx, t, best) },
		func() error {
			return timed(t, "label on "+best, func() error { return s.label(ctx, best, rolePrimary) })
		},
		func() error {
			return timed(t, third+" follows", func() error { return s.repoint(ctx, third, best) })
		},
	} {
		if err := step(); err != nil {
			return "", err
		}
	}
	return best, nil
}

// awaitDeath returns when a connection to a server that was asked to sleep breaks; with an error when the
// killing has failed.
func (s *script) awaitDeath(ctx context.Context, name string, killed chan error) error {
	for s.exec(ctx, name, sleep) == nil {
		select {
		case err := <-killed:
			if err != nil {
				return err
			}
			killed <- nil
		default:
		}
	}
	return ctx.Err()
}

// elect stops the two replicas' receivers and finds the one that holds what the other does.
func (s *script) elect(ctx context.Context, t *timeline, dead string) (best, third, set string, err error) {
	names := s.others(dead)
	held, errs := make([]gtid.Set, len(names)), make([]error, len(names))
	var both sync.WaitGroup
	for i, name := range names {
		both.Go(func() { held[i], errs[i] = s.stopReceiver(ctx, t, name) })
	}
	both.Wait()
	if err := errors.Join(errs...); err != nil {
		return "", "", "", err
	}
	if held[0].Contains(held[1]) {
		return names[0], names[1], held[0].String(), nil
	}
	return names[1], names[0], held[1].String(), nil
}

// stopReceiver returns what a replica has when nothing more can come.
func (s *script) stopReceiver(ctx context.Context, t *timeline, name string) (set gtid.Set, err error) {
	err = timed(t, "receiver stopped on "+name, func() error { return s.exec(ctx, name, "STOP REPLICA IO_THREAD") })
	if err != nil {
		return set, err
	}
	// In this order: what was received and then executed is in one of them.
	got, err := query[string](ctx, s.admin[name], received)
	if err != nil {
		return set, err
	}
	done, err := query[string](ctx, s.admin[name], executed)
	if err != nil {
		return set, err
	}
	return gtid.Parse(done + "," + got)
}

// rejoin makes the former primary a replica. One that has no data, or that committed what nobody received and nobody was
// told of, gets a copy of the new primary's.
func (s *script) rejoin(ctx context.Context, name, source string) error {
	own, err := query[string](ctx, s.admin[name], executed)
	if err != nil {
		return err
	}
	extra, err := query[string](ctx, s.admin[source], "SELECT GTID_SUBTRACT(?, @@GLOBAL.gtid_executed)", own)
	if err != nil {
		return err
	}
	if extra != "" {
		s.b.say("    %s holds writes that no one else has, none of them acknowledged: cloning it", name)
	}
	if extra != "" || own == "" {
		if err := s.clone(ctx, name, source); err != nil {
			return err
		}
	}
	// A server that was cloned answers for a moment before it starts again.
	return framework.Await(ctx, name+" to follow "+source, readyWithin, func(ctx context.Context) (bool, string, error) {
		return true, "", s.follow(ctx, name, source)
	})
}

func (s *script) clone(ctx context.Context, name, source string) error {
	err := s.patiently(ctx, name, fmt.Sprintf("SET GLOBAL super_read_only = OFF, GLOBAL clone_valid_donor_list = '%s:3306'; CLONE INSTANCE FROM %s@'%s':3306 IDENTIFIED BY '%s' REQUIRE SSL",
		host(source), adminUser, host(source), s.password))
	if err != nil {
		return err
	}
	return s.awaitServer(ctx, name)
}
