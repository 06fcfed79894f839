package main

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"cnmsql.co/operator/e2e/chaos/judge"
	"cnmsql.co/operator/e2e/framework"
)

// How often and how patiently clients write.
const (
	writeEvery = 20 * time.Millisecond
	retryAfter = 25 * time.Millisecond
	// probePatience is short, so that a server which hangs is asked anew all the time.
	probePatience = 2 * time.Second
	// connections is how many clients write through the Service; probes how many to each instance.
	connections = 4
	probes      = 2
)

// Tables of the two kinds of clients.
const (
	serviceTable = "through_service"
	directTable  = "direct"
)

// clients write all the time: applications through the rw Service, and probes to every instance directly. Both
// remember what they were told is stored; of the probes' writes it is known which instance said so.
type clients struct {
	service, direct *framework.Ledger

	mu     sync.Mutex
	writes []judge.Write

	pools  []*sql.DB
	cancel context.CancelFunc
	all    sync.WaitGroup
}

// startClients makes the tables and begins to write. instances are found where the history saw their Pods, the Service at
// its address: no fault of the cluster's DNS keeps a client away.
func startClients(ctx context.Context, db *framework.Database, service string, instances []string) (*clients, error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &clients{service: framework.NewLedger(), direct: framework.NewLedger(), cancel: cancel}
	pool, err := db.Open(service)
	if err != nil {
		cancel()
		return nil, err
	}
	defer func() { _ = pool.Close() }()
	for _, table := range []string{serviceTable, directTable} {
		err := framework.Await(ctx, "the table "+table, time.Minute, func(ctx context.Context) (bool, string, error) {
			_, err := pool.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+table+
				" (id BIGINT PRIMARY KEY, server VARCHAR(64) NOT NULL, written TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6))")
			return err == nil, "", err
		})
		if err != nil {
			cancel()
			return nil, err
		}
	}
	patient, quick := *db, *db
	quick.Patience = probePatience
	for range connections {
		err = c.start(running, &patient, service, func(key int64) string {
			return fmt.Sprintf("INSERT INTO %s (id, server) VALUES (%d, @@hostname)", serviceTable, key)
		}, c.service, nil)
		if err != nil {
			break
		}
	}
	for _, instance := range instances {
		for range probes {
			if err == nil {
				err = c.start(running, &quick, instance, func(key int64) string {
					// Who answers at that address may be another by now; then nothing is written.
					return fmt.Sprintf("INSERT INTO %s (id, server) SELECT %d, @@hostname FROM DUAL WHERE @@hostname = '%s'", directTable, key, instance)
				}, c.direct, func(sent, acked time.Time) { c.wrote(judge.Write{Instance: instance, Sent: sent, Acked: acked}) })
			}
		}
	}
	if err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

// start begins one connection's writing.
func (c *clients) start(ctx context.Context, db *framework.Database, host string, insert func(key int64) string, l *framework.Ledger, told func(sent, acked time.Time)) error {
	pool, err := db.Open(host)
	if err != nil {
		return err
	}
	pool.SetMaxOpenConns(1)
	c.pools = append(c.pools, pool)
	c.all.Go(func() {
		for ctx.Err() == nil {
			key, wait, sent := l.Next(), writeEvery, time.Now()
			err := write(ctx, pool, insert(key))
			acked := time.Now()
			if err != nil {
				l.Failed(key, err)
				wait = retryAfter
			} else {
				l.Acknowledged(key, acked)
				if told != nil {
					told(sent, acked)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	})
	return nil
}

// write is acknowledged when the server says that it stored one row.
func write(ctx context.Context, pool *sql.DB, insert string) error {
	result, err := pool.ExecContext(ctx, insert)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		err = fmt.Errorf("%d rows were stored", n)
	}
	return err
}

func (c *clients) wrote(w judge.Write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writes = append(c.writes, w)
}

// written are copies of the probes' acknowledged writes.
func (c *clients) written() []judge.Write {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]judge.Write(nil), c.writes...)
}

// stop ends the writing and waits for the last answers.
func (c *clients) stop() {
	c.cancel()
	c.all.Wait()
	for _, pool := range c.pools {
		_ = pool.Close()
	}
	c.pools = nil
}
