package main

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// timeline collects what happened, from several goroutines. A nil one collects nothing.
type timeline struct {
	begin time.Time

	mu     sync.Mutex
	events []event
}

type event struct {
	at        time.Time
	who, what string
}

func newTimeline(wanted bool) *timeline {
	if !wanted {
		return nil
	}
	return &timeline{begin: time.Now()}
}

func (t *timeline) add(who, format string, args ...any) { t.addAt(time.Now(), who, format, args...) }

func (t *timeline) addAt(at time.Time, who, format string, args ...any) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.events = append(t.events, event{at, who, fmt.Sprintf(format, args...)})
}

// outcomes makes the part of a writer; nil when nothing is collected.
func (t *timeline) outcomes(who string) *outcomes {
	if t == nil {
		return nil
	}
	return &outcomes{t: t, who: who}
}

// print writes everything since the disturbance began, with zero as the origin.
func (t *timeline) print(out io.Writer, heading string, zero time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	slices.SortStableFunc(t.events, func(a, b event) int { return a.at.Compare(b.at) })
	_, _ = fmt.Fprintf(out, "\n%s\n0 ms is the last acknowledged write before no server acknowledged any, at %s\n\n", heading, zero.UTC().Format("15:04:05.000"))
	from := slices.IndexFunc(t.events, func(e event) bool { return e.who == "bench" })
	for _, e := range t.events[max(from, 0):] {
		_, _ = fmt.Fprintf(out, "%9.1f ms  %-14s  %s\n", float64(e.at.Sub(zero).Microseconds())/1000, e.who, e.what)
	}
}
