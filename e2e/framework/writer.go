package framework

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"
)

// Times of an application: how often it writes, and how soon it tries again.
const (
	writeEvery = 5 * time.Millisecond
	retryAfter = 10 * time.Millisecond
)

// Writer is an application that writes through the rw Service until it is stopped, one row after the other,
// and connects anew when it must.
type Writer struct {
	Ledger *Ledger
	db     *sql.DB
	table  string
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// StartWriter makes the table anew and starts to write. It returns after the first acknowledged write.
func (d *Database) StartWriter(ctx context.Context, table string) (*Writer, error) {
	db, err := d.Service("rw")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, statement := range []string{
		"DROP TABLE IF EXISTS " + table,
		"CREATE TABLE " + table + " (id BIGINT PRIMARY KEY, written TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))",
	} {
		// The nodes learn of a Service's endpoints a moment after the API server does.
		err := Await(ctx, "the table "+table, 10*time.Second, func(ctx context.Context) (bool, string, error) {
			_, err := db.ExecContext(ctx, statement)
			return err == nil, fmt.Sprint(err), nil
		})
		if err != nil {
			return nil, err
		}
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w := &Writer{Ledger: NewLedger(), db: db, table: table, cancel: cancel}
	w.done.Go(func() { w.write(running) })
	if err := w.AwaitAcknowledged(ctx, time.Now(), 10*time.Second); err != nil {
		return nil, err
	}
	return w, nil
}

func (w *Writer) write(ctx context.Context) {
	insert := "INSERT INTO " + w.table + " (id) VALUES (?)"
	for ctx.Err() == nil {
		key, wait := w.Ledger.Next(), writeEvery
		if _, err := w.db.ExecContext(ctx, insert, key); err != nil {
			w.Ledger.Failed(key, err)
			wait = retryAfter
		} else {
			w.Ledger.Acknowledged(key, time.Now())
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// AwaitAcknowledged waits until a write was acknowledged after t.
func (w *Writer) AwaitAcknowledged(ctx context.Context, t time.Time, limit time.Duration) error {
	return Await(ctx, "an acknowledged write", limit, func(context.Context) (bool, string, error) {
		n, err := w.Ledger.Errors()
		return w.Ledger.Acked(t), fmt.Sprintf("%d acknowledged, %d errors, the last: %v", w.Ledger.Count(), n, err), nil
	})
}

// Stop ends the writing and waits for the last answer.
func (w *Writer) Stop() {
	w.cancel()
	w.done.Wait()
	_ = w.db.Close()
}

// Keys are the ids of a table's rows as one server sees them, in ascending order.
func Keys(ctx context.Context, db *sql.DB, table string) ([]int64, error) {
	rows, err := db.QueryContext(ctx, "SELECT id FROM "+table+" ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("reading the table %s: %w", table, err)
	}
	defer func() { _ = rows.Close() }()
	var keys []int64
	for rows.Next() {
		var k int64
		if err := rows.Scan(&k); err != nil {
			return nil, fmt.Errorf("reading the table %s: %w", table, err)
		}
		keys = append(keys, k)
	}
	return keys, rows.Err()
}

// Keys are the ids that one server has of what this writer wrote.
func (w *Writer) Keys(ctx context.Context, db *sql.DB) ([]int64, error) {
	return Keys(ctx, db, w.table)
}

// Verdict compares a stopped writer's ledger with the database, read through a Service or from an instance. A
// replica may need a moment to apply the last writes.
func (w *Writer) Verdict(ctx context.Context, d *Database, host string, limit time.Duration) (missing, invented []int64, err error) {
	db, err := d.Open(host)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = db.Close() }()
	read := false
	waitErr := Await(ctx, "all acknowledged writes on "+host, limit, func(ctx context.Context) (bool, string, error) {
		keys, err := w.Keys(ctx, db)
		if err != nil {
			return false, "", err
		}
		read = true
		missing, invented = w.Ledger.Missing(keys), w.Ledger.Invented(keys)
		return len(missing) == 0, fmt.Sprintf("%d of %d acknowledged writes are missing", len(missing), w.Ledger.Count()), nil
	})
	if waitErr != nil && !read {
		return nil, nil, waitErr
	}
	return missing, invented, nil
}
