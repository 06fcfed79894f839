package main

import (
	"context"
	"database/sql"
	"fmt"
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

// writers are the two applications of a run.
type writers struct {
	service, direct *application
	cancel          context.CancelFunc
	once            sync.Once
}

// startWriters makes the tables anew and begins to write to them.
func startWriters(ctx context.Context, s *side, t *timeline) (*writers, error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &writers{
		service: &application{table: "service", ledger: framework.NewLedger()},
		direct:  &application{table: "direct", ledger: framework.NewLedger()},
		cancel:  cancel,
	}
	routed := *s.db
	routed.RejectReadOnly = s.sticky
	err := makeTables(ctx, s, w.service.table, w.direct.table)
	if err == nil {
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

func makeTables(ctx context.Context, s *side, tables ...string) error {
	db, err := s.db.Open(s.service)
	if err != nil {
		return err
	}
	defer db.Close()
	err = framework.Await(ctx, "the Service "+s.service+" to lead to a server", time.Minute, func(ctx context.Context) (bool, string, error) {
		return true, "", db.PingContext(ctx)
	})
	if err != nil {
		return err
	}
	for _, table := range tables {
		for _, statement := range []string{
			"DROP TABLE IF EXISTS " + table,
			"CREATE TABLE " + table + " (id BIGINT PRIMARY KEY, written TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))",
		} {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return fmt.Errorf("preparing the table %s: %w", table, err)
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

// awaitCalm waits until both have had their writes acknowledged for a while.
func (w *writers) awaitCalm(ctx context.Context) error {
	from := time.Now()
	return framework.Await(ctx, "calm writes", calmWithin, func(context.Context) (bool, string, error) {
		now := time.Now()
		service, direct := w.service.ledger.Gap(now.Add(-calm), now), w.direct.ledger.Gap(now.Add(-calm), now)
		_, last := w.service.ledger.Errors()
		return now.Sub(from) >= calm && max(service, direct) < calmPause, fmt.Sprintf("pauses of %s and %s; the last error: %v", service, direct, last), nil
	})
}

// stop ends the writing and waits for the last answers.
func (w *writers) stop() {
	w.once.Do(func() {
		w.cancel()
		for _, a := range []*application{w.service, w.direct} {
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
		for _, a := range []*application{w.service, w.direct} {
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
		found, err := keys(ctx, db, a.table)
		if err != nil {
			return false, "", err
		}
		missing := a.ledger.Missing(found)
		return len(missing) == 0, fmt.Sprintf("%d of %d are missing", len(missing), a.ledger.Count()), nil
	})
}

func keys(ctx context.Context, db *sql.DB, table string) ([]int64, error) {
	rows, err := db.QueryContext(ctx, "SELECT id FROM "+table)
	if err != nil {
		return nil, fmt.Errorf("reading the table %s: %w", table, err)
	}
	defer rows.Close()
	var found []int64
	for rows.Next() {
		var k int64
		if err := rows.Scan(&k); err != nil {
			return nil, fmt.Errorf("reading the table %s: %w", table, err)
		}
		found = append(found, k)
	}
	return found, rows.Err()
}
