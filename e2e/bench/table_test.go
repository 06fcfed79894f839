package main

import (
	"path/filepath"
	"slices"
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

func add(t *testing.T, to *table, way, side string, service, direct time.Duration) {
	t.Helper()
	if err := to.add(way, side, result{service: service, direct: direct}); err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, file string) *table {
	t.Helper()
	table, err := openTable(file)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func printed(t *table) (lines []string) {
	var b strings.Builder
	t.print(&b)
	for line := range strings.Lines(strings.TrimSpace(b.String())) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

func TestTableHasMediansAndMaximaOfAllSidesInTheirOrderAndSaysWhichTargetsAreMet(t *testing.T) {
	table := opened(t, "")
	add(t, table, "kill", "gr", 0, 7*time.Second)
	for _, n := range []time.Duration{3, 1, 2} {
		add(t, table, "kill", "ours", 2*n*time.Second, n*time.Second)
	}
	add(t, table, "switchover", "ours", 900*time.Millisecond, 500*time.Millisecond)
	want := []string{
		"median / worst (runs) through ours gr",
		"switchover service 0.900 s / 0.900 s (1) -",
		"switchover direct 0.500 s / 0.500 s (1) -",
		"kill service 4.000 s / 6.000 s (3) -",
		"kill direct 2.000 s / 3.000 s (3) 7.000 s / 7.000 s (1)",
		"met: switchover through the Service under 1s, median 0.900 s",
		"missed: kill through the Service under 3s, median 4.000 s",
		"met: kill not slower than gr, medians 2.000 s and 7.000 s",
	}
	if got := printed(table); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestResultsThatWereKeptAreInTheTableOfTheNextRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "results")
	first := opened(t, file)
	add(t, first, "node", "ours", 19*time.Second, 18*time.Second)
	add(t, first, "node", "gr-default", 0, 11*time.Second)
	second := opened(t, file)
	if got, want := printed(second), printed(first); !slices.Equal(got, want) || len(got) < 3 {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	add(t, second, "node", "ours", 21*time.Second, 20*time.Second)
	if got := len(opened(t, file).pauses[cell{"node", direct, "ours"}]); got != 2 {
		t.Errorf("%d results are kept, want 2", got)
	}
}

func TestNamesThatThereAreNotAreRefused(t *testing.T) {
	if err := allOf("way", []string{"kill", "kil"}, ways); err == nil || !strings.Contains(err.Error(), `"kil"`) {
		t.Errorf("got %v", err)
	}
	if err := allOf("side", sides, sides); err != nil {
		t.Error(err)
	}
}
