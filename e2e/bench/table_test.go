package main

import (
	"strings"
	"testing"
	"time"
)

func TestMedianIsTheMiddleOrTheMeanOfTheTwoInTheMiddle(t *testing.T) {
	for _, c := range []struct {
		list []time.Duration
		want time.Duration
	}{
		{[]time.Duration{7}, 7},
		{[]time.Duration{9, 1, 4}, 4},
		{[]time.Duration{10, 1, 4, 2}, 3},
	} {
		if got := median(c.list); got != c.want {
			t.Errorf("median of %v is %d, want %d", c.list, got, c.want)
		}
	}
}

func TestTableComparesMediansAndLeavesOutWhatWasNotMeasured(t *testing.T) {
	table := newTable()
	for _, ms := range []time.Duration{300, 100, 200} {
		table.add("switchover", "ours", result{service: 2 * ms * time.Millisecond, direct: ms * time.Millisecond})
		table.add("switchover", "scripted", result{service: ms * time.Millisecond, direct: ms * time.Millisecond})
	}
	table.add("delete", "ours", result{service: time.Second, direct: time.Second})
	var b strings.Builder
	table.print(&b)
	var rows []string
	for line := range strings.Lines(b.String()) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"switchover service 3 0.400 s 0.600 s 0.200 s 0.300 s 2.0",
		"switchover direct 3 0.200 s 0.300 s 0.200 s 0.300 s 1.0",
		"delete service 1 1.000 s 1.000 s - - -",
		"delete direct 1 1.000 s 1.000 s - - -",
	}
	if got := strings.Join(rows[2:], "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
}
