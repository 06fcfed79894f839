package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// The two figures of a run.
const (
	throughService = "service"
	direct         = "direct"
)

// cell is one figure of one side for one way.
type cell struct{ way, through, side string }

// table collects the results, and keeps them in a file if it has one.
type table struct {
	file        string
	ways, sides []string
	pauses      map[cell][]time.Duration
}

// record is a result in the file, in nanoseconds; 0 where there is no Service.
type record struct {
	Way     string        `json:"way"`
	Side    string        `json:"side"`
	Service time.Duration `json:"service"`
	Direct  time.Duration `json:"direct"`
}

// openTable reads what earlier runs have left in a file, which need not be there. Without a name nothing is kept.
func openTable(file string) (*table, error) {
	t := &table{file: file, pauses: map[cell][]time.Duration{}}
	if file == "" {
		return t, nil
	}
	content, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("reading earlier results: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		var r record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			return nil, fmt.Errorf("reading earlier results in %s: %w", file, err)
		}
		t.note(r)
	}
	return t, nil
}

func (t *table) add(way, side string, r result) error {
	line := record{way, side, r.service, r.direct}
	t.note(line)
	if t.file == "" {
		return nil
	}
	text, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("keeping a result: %w", err)
	}
	f, err := os.OpenFile(t.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keeping a result: %w", err)
	}
	defer f.Close()
	if _, err := f.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("keeping a result: %w", err)
	}
	return nil
}

func (t *table) note(r record) {
	if !slices.Contains(t.ways, r.Way) {
		t.ways = append(t.ways, r.Way)
	}
	if !slices.Contains(t.sides, r.Side) {
		t.sides = append(t.sides, r.Side)
	}
	for through, pause := range map[string]time.Duration{throughService: r.Service, direct: r.Direct} {
		if pause > 0 {
			c := cell{r.Way, through, r.Side}
			t.pauses[c] = append(t.pauses[c], pause)
		}
	}
}

// inOrder sorts names as the program lists them.
func inOrder(names, order []string) []string {
	return slices.SortedStableFunc(slices.Values(names), func(a, b string) int {
		return slices.Index(order, a) - slices.Index(order, b)
	})
}

// print has a row for each way and figure, with median, maximum and number of runs of each side.
func (t *table) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	ranked := inOrder(t.sides, sides)
	_, _ = fmt.Fprintf(w, "\nmedian / worst (runs)\tthrough\t%s\n", strings.Join(ranked, "\t"))
	for _, way := range inOrder(t.ways, ways) {
		for _, through := range []string{throughService, direct} {
			row := []string{way, through}
			for _, side := range ranked {
				row = append(row, figures(t.pauses[cell{way, through, side}]))
			}
			_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
		}
	}
	_ = w.Flush()
	for _, line := range t.verdicts() {
		_, _ = fmt.Fprintln(out, line)
	}
}

func figures(list []time.Duration) string {
	if len(list) == 0 {
		return "-"
	}
	return fmt.Sprintf("%s / %s (%d)", seconds(median(list)), seconds(slices.Max(list)), len(list))
}

// median is the middle one, or the mean of the two in the middle. The list must not be empty.
func median(list []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// targets are what the product is to reach, in the median, as an application sees it through the Service.
var targets = []struct {
	way   string
	limit time.Duration
}{
	{"switchover", time.Second}, {"kill", 3 * time.Second}, {"delete", 3 * time.Second},
	{"node", 20 * time.Second}, // the lease's 15 s and 5 s more
}

// verdicts say whether the targets are met, as far as the ways were measured.
func (t *table) verdicts() []string {
	var lines []string
	say := func(met bool, format string, args ...any) {
		word := "missed"
		if met {
			word = "met"
		}
		lines = append(lines, word+": "+fmt.Sprintf(format, args...))
	}
	for _, target := range targets {
		if list := t.pauses[cell{target.way, throughService, "ours"}]; len(list) > 0 {
			say(median(list) < target.limit, "%s through the Service under %s, median %s", target.way, target.limit, seconds(median(list)))
		}
	}
	ours := t.pauses[cell{"kill", direct, "ours"}]
	for _, side := range []string{"gr", "gr-default"} {
		if theirs := t.pauses[cell{"kill", direct, side}]; len(ours) > 0 && len(theirs) > 0 {
			say(median(ours) <= median(theirs), "kill not slower than %s, medians %s and %s", side, seconds(median(ours)), seconds(median(theirs)))
		}
	}
	return lines
}
