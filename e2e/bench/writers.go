package main

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"sync"
	"time"

	"cnmsql.co/operator/e2e/framework"
)

// Times of an application: how often it writes, how soon it tries again.
const (
	writeEvery = 5 * time.Millisecond
	retryAfter = 10 * time.Millisecond
)

// application writes rows to one table, through one or several hosts at the same time, and keeps one ledger.
type application struct {
	table  string
	ledger *framework.Ledger
	pools  []*sql.DB
	done   sync.WaitGroup
}

// writers are the applications of a run. service is nil where there is no Service.
type writers struct {
	service, direct *application
	cancel          context.CancelFunc
	once            sync.Once
}

// startWriters makes the tables anew and begins to write to them.
func startWriters(ctx context.Context, s *side, t *timeline) (*writers, error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &writers{direct: &application{table: "direct", ledger: framework.NewLedger()}, cancel: cancel}
	if s.service != "" {
		w.service = &application{table: "service", ledger: framework.NewLedger()}
	}
	routed := *s.db
	routed.RejectReadOnly = s.sticky
	err := makeTables(ctx, s, w.applications())
	if err == nil && w.service != nil {
		err = w.service.open(running, routed.Open, s.service, t)
	}
	for _, name := range s.instances {
		if err == nil {
			err = w.direct.open(running, s.db.Open, name, t)
		}
	}
	if err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

func (w *writers) applications() []*application {
	return slices.DeleteFunc([]*application{w.service, w.direct}, func(a *application) bool { return a == nil })
}

// makeTables goes through the Service, or to the primary where there is none.
func makeTables(ctx context.Context, s *side, applications []*application) error {
	host := s.service
	if host == "" {
		primary, err := s.primary(ctx)
		if err != nil {
			return err
		}
		host = primary
	}
	db, err := s.db.Open(host)
	if err != nil {
		return err
	}
	defer db.Close()
	err = framework.Await(ctx, host+" to lead to a server", time.Minute, func(ctx context.Context) (bool, string, error) {
		return true, "", db.PingContext(ctx)
	})
	if err != nil {
		return err
	}
	for _, a := range applications {
		for _, statement := range []string{
			"DROP TABLE IF EXISTS " + a.table,
			"CREATE TABLE " + a.table + " (id BIGINT PRIMARY KEY, written TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))",
		} {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("preparing the table %s: %w", a.table, err)
			}
		}
	}
	return nil
}

// open begins to write through a host, on one connection.
func (a *application) open(ctx context.Context, connect func(host string) (*sql.DB, error), host string, t *timeline) error {
	db, err := connect(host)
	if err != nil {
		return err
	}
	db.SetMaxOpenConns(1)
	a.pools = append(a.pools, db)
	seen := t.outcomes("→ " + host)
	a.done.Go(func() { a.write(ctx, db, seen) })
	return nil
}

func (a *application) write(ctx context.Context, db *sql.DB, seen *outcomes) {
	insert := "INSERT INTO " + a.table + " (id) VALUES (?)"
	for ctx.Err() == nil {
		key, wait, sent := a.ledger.Next(), writeEvery, time.Now()
		_, err := db.ExecContext(ctx, insert, key)
		now := time.Now()
		if err != nil {
			a.ledger.Failed(key, err)
			wait = retryAfter
		} else {
			a.ledger.Acknowledged(key, now)
		}
		seen.add(sent, now, err)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// awaitCalm waits until all have had their writes acknowledged for a while.
func (w *writers) awaitCalm(ctx context.Context) error {
	from := time.Now()
	return framework.Await(ctx, "calm writes", calmWithin, func(context.Context) (bool, string, error) {
		now, pause, last := time.Now(), time.Duration(0), error(nil)
		for _, a := range w.applications() {
			pause = max(pause, a.ledger.Gap(now.Add(-calm), now))
			_, last = a.ledger.Errors()
		}
		return now.Sub(from) >= calm && pause < calmPause, fmt.Sprintf("a pause of %s; the last error: %v", pause, last), nil
	})
}

// awaitWrites waits until each application has had a write acknowledged after a moment.
func (w *writers) awaitWrites(ctx context.Context, after time.Time) error {
	return framework.Await(ctx, "writes to be acknowledged again", calmWithin, func(context.Context) (bool, string, error) {
		waiting := slices.ContainsFunc(w.applications(), func(a *application) bool { return !a.ledger.Acked(after) })
		return !waiting, "", nil
	})
}

// stop ends the writing and waits for the last answers.
func (w *writers) stop() {
	w.once.Do(func() {
		w.cancel()
		for _, a := range w.applications() {
			a.done.Wait()
			for _, db := range a.pools {
				_ = db.Close()
			}
		}
	})
}

// verify looks for every acknowledged write on every instance. A replica may need a moment.
func (w *writers) verify(ctx context.Context, s *side) error {
	for _, host := range s.instances {
		db, err := s.db.Open(host)
		if err != nil {
			return err
		}
		for _, a := range w.applications() {
			if err == nil {
				err = a.verify(ctx, db, host)
			}
		}
		_ = db.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *application) verify(ctx context.Context, db *sql.DB, host string) error {
	return framework.Await(ctx, "all acknowledged writes on "+host, time.Minute, func(ctx context.Context) (bool, string, error) {
		found, err := framework.Keys(ctx, db, a.table)
		if err != nil {
			return false, "", err
		}
		missing := a.ledger.Missing(found)
		return len(missing) == 0, fmt.Sprintf("%d of %d are missing", len(missing), a.ledger.Count()), nil
	})
}
