package framework

import (
	"errors"
	"slices"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

// written has one acknowledged write for each time.
func written(times ...float64) *Ledger {
	l := NewLedger()
	for _, t := range times {
		l.Acknowledged(l.Next(), at(t))
	}
	return l
}

func TestGapIsTheLongestTimeWithoutAnAcknowledgedWrite(t *testing.T) {
	l := written(1, 2, 3, 5.5, 6, 7)
	for _, c := range []struct{ from, to, want float64 }{
		{0, 7, 2.5},   // in the middle
		{2.9, 7, 2.5}, // begins before the gap
		{3.5, 7, 2.5}, // begins in the gap: what was before belongs to it
		{5.6, 7, 1},   // after the gap
		{5.5, 10, 3},  // nothing came any more
		{10, 12, 5},   // nothing came at all
	} {
		if got := l.Gap(at(c.from), at(c.to)).Seconds(); got != c.want {
			t.Errorf("gap from %v to %v is %v s, want %v", c.from, c.to, got, c.want)
		}
	}
}

func TestGapOfAnEmptyLedgerIsTheWholeTime(t *testing.T) {
	if got := NewLedger().Gap(at(1), at(4)); got != 3*time.Second {
		t.Errorf("gap %s", got)
	}
}

func TestMissingAreAcknowledgedWritesThatAreNotThere(t *testing.T) {
	l := written(1, 2, 3)
	failed := l.Next()
	l.Failed(failed, errors.New("connection lost"))
	if got := l.Missing([]int64{1, 3}); !slices.Equal(got, []int64{2}) {
		t.Errorf("missing %v", got)
	}
	if got := l.Missing([]int64{1, 2, 3, failed}); got != nil {
		t.Errorf("missing %v", got)
	}
	if n, err := l.Errors(); n != 1 || err == nil {
		t.Errorf("%d errors, last %v", n, err)
	}
}

func TestMissingBeforeLeavesOutWhatWasAcknowledgedLater(t *testing.T) {
	l := written(1, 2, 3)
	if got := l.MissingBefore([]int64{1}, at(3)); !slices.Equal(got, []int64{2}) {
		t.Errorf("missing %v", got)
	}
}

func TestWhenAndFirstFindAcknowledgedWrites(t *testing.T) {
	l := written(1, 2)
	if !l.When(2).Equal(at(2)) || !l.When(9).IsZero() || !l.First(at(1)).Equal(at(2)) || !l.First(at(2)).IsZero() {
		t.Errorf("%s %s %s %s", l.When(2), l.When(9), l.First(at(1)), l.First(at(2)))
	}
}

func TestInventedAreKeysThatNobodyWroteOrThatAreThereTwice(t *testing.T) {
	l := written(1, 2)
	if got := l.Invented([]int64{1, 2}); got != nil {
		t.Errorf("invented %v", got)
	}
	if got := l.Invented([]int64{2, 1, 2, 7, 0}); !slices.Equal(got, []int64{2, 7, 0}) {
		t.Errorf("invented %v", got)
	}
}
