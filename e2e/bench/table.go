package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// table collects the results by way and side.
type table struct {
	ways []string
	// pauses by way, how the application reached the database, and side.
	pauses map[[3]string][]time.Duration
}

func newTable() *table { return &table{pauses: map[[3]string][]time.Duration{}} }

func (t *table) add(way, side string, r result) {
	if !slices.Contains(t.ways, way) {
		t.ways = append(t.ways, way)
	}
	for through, pause := range map[string]time.Duration{"service": r.service, "direct": r.direct} {
		cell := [3]string{way, through, side}
		t.pauses[cell] = append(t.pauses[cell], pause)
	}
}

func (t *table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "\nway\tthrough\tn\tours, median\tmax\tscripted, median\tmax\tratio of medians")
	for _, way := range t.ways {
		for _, through := range []string{"service", "direct"} {
			ours, scripted := t.pauses[[3]string{way, through, "ours"}], t.pauses[[3]string{way, through, "scripted"}]
			ratio := "-"
			if len(ours) > 0 && len(scripted) > 0 {
				ratio = fmt.Sprintf("%.1f", median(ours).Seconds()/median(scripted).Seconds())
			}
			_, _ = fmt.Fprintf(w, "%s\t%s\t%d\t%s\t%s\t%s\t%s\t%s\n", way, through, max(len(ours), len(scripted)),
				orDash(ours, median), orDash(ours, slices.Max), orDash(scripted, median), orDash(scripted, slices.Max), ratio)
		}
	}
	_ = w.Flush()
}

func orDash(list []time.Duration, figure func([]time.Duration) time.Duration) string {
	if len(list) == 0 {
		return "-"
	}
	return seconds(figure(list))
}

// median is the middle one, or the mean of the two in the middle. The list must not be empty.
func median(list []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
