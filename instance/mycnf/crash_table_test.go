package mycnf_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

var crashRuns = flag.Int("crashes", 0, "how often to run each combination of settings in the tables of docs/adr/0005-relay-log.md, which takes half an hour for five; 0 leaves them out")

// TestEveryCombinationOfSettingsIsCrashed prints the table of docs/adr/0005-relay-log.md. It judges nothing but that it
// measured.
func TestEveryCombinationOfSettingsIsCrashed(t *testing.T) {
	if *crashRuns == 0 {
		t.Skip("asked for with -crashes=5")
	}
	t.Run("replica", func(t *testing.T) {
		p := newPair(t, func(p *pair) *realServer { return p.replica })
		p.source.start(t)
		for _, tr := range replicaTrials() {
			p.repeat(t, "replica", tr, p.crashReplica)
		}
	})
	t.Run("source", func(t *testing.T) {
		p := newPair(t, func(p *pair) *realServer { return p.source })
		p.replica.start(t)
		for _, tr := range sourceTrials() {
			p.repeat(t, "source", tr, p.crashSource)
		}
	})
}

func replicaTrials() []trial {
	var list []trial
	add := func(c crash, applies bool, options ...string) {
		for _, o := range options {
			list = append(list, trial{crash: c, options: strings.Fields(o), applies: applies})
		}
	}
	for _, c := range []crash{serverKilled, containerKilled} {
		add(c, false, "", "sync_relay_log=0", "relay_log_recovery=ON")
	}
	add(powerLost, false, "", "sync_relay_log=0", "sync_relay_log=10000", "sync_relay_log=10000 sync_source_info=1", "relay_log_recovery=ON")
	add(powerLost, true, "", "sync_relay_log=10000", "sync_binlog=0", "innodb_flush_log_at_trx_commit=2", "sync_binlog=0 innodb_flush_log_at_trx_commit=2")
	add(serverKilled, true, "", "sync_binlog=0 innodb_flush_log_at_trx_commit=2")
	return list
}

func sourceTrials() []trial {
	var list []trial
	for _, o := range []string{"", "sync_binlog=0", "innodb_flush_log_at_trx_commit=2", "sync_binlog=0 innodb_flush_log_at_trx_commit=2"} {
		list = append(list, trial{crash: powerLost, options: strings.Fields(o)})
	}
	return append(list, trial{crash: serverKilled, options: []string{"sync_binlog=0", "innodb_flush_log_at_trx_commit=2"}})
}

// repeat runs a trial as often as wanted and prints its row.
func (p *pair) repeat(t *testing.T, who string, tr trial, run func(*testing.T, trial) outcome) {
	t.Helper()
	var sum outcome
	losing, troubles := 0, map[string]int{}
	for range *crashRuns {
		o := run(t, tr)
		if o.acked == 0 {
			t.Errorf("%s, %s, %v: nothing was acknowledged", who, tr.crash, tr.options)
		}
		sum.acked, sum.lost, sum.rows, sum.missing = sum.acked+o.acked, sum.lost+o.lost, sum.rows+o.rows, sum.missing+o.missing
		if o.lost > 0 || o.missing > 0 {
			losing++
		}
		if o.trouble != "" {
			troubles[fmt.Sprintf("%.40s", o.trouble)]++
		}
	}
	settings := strings.Join(tr.options, ", ")
	if settings == "" {
		settings = "as rendered"
	}
	fmt.Printf("| %s, %s | %v | %s | %d of %d | %d of %d | %d of %d | %v |\n", who, tr.crash, tr.applies, settings,
		losing, *crashRuns, sum.lost, sum.acked, sum.missing, sum.rows, troubles)
}

// TestWhatItCostsToFlushTheRelayLogIsMeasured prints how many small transactions a second a source commits that waits for
// its replica.
func TestWhatItCostsToFlushTheRelayLogIsMeasured(t *testing.T) {
	if *crashRuns == 0 {
		t.Skip("asked for with -crashes=5")
	}
	p := newPair(t, func(*pair) *realServer { return nil })
	p.source.start(t)
	p.replica.start(t)
	for _, connections := range []int{1, 4, 16} {
		for _, flush := range []string{"1", "10000", "0"} {
			var rates []float64
			for range *crashRuns {
				p.connect(t)
				p.replica.query(t, "SET GLOBAL sync_relay_log = "+flush)
				rates = append(rates, p.rate(t, connections))
			}
			slices.Sort(rates)
			fmt.Printf("| %d | %s | %.0f (%.0f to %.0f) |\n", connections, flush, rates[len(rates)/2], rates[0], rates[len(rates)-1])
		}
	}
}

// rate lets clients write for some seconds and ends the pair's connection.
func (p *pair) rate(t *testing.T, connections int) float64 {
	t.Helper()
	writers := startClients(t, p.source, connections, true)
	time.Sleep(500 * time.Millisecond) // until all are at work
	first, begin := writers.count(), time.Now()
	time.Sleep(3 * time.Second) // what is measured
	rate := float64(writers.count()-first) / time.Since(begin).Seconds()
	p.disconnect(t)
	writers.end()
	return rate
}
