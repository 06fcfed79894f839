package judge

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }

func write(instance string, sent, acked float64) Write {
	return Write{instance, at(sent), at(acked)}
}

func read(generation int64, began, ended float64) Reading {
	return Reading{at(began), at(ended), generation}
}

var aba = []Term{{1, "a"}, {2, "b"}, {3, "a"}}

func TestOneWriterAfterTheOtherIsFine(t *testing.T) {
	for name, writes := range map[string][]Write{
		"none":                            nil,
		"one after the other":             {write("a", 0, 1), write("b", 2, 3), write("a", 4, 5)},
		"sent before the other had begun": {write("a", 0, 9), write("b", 2, 3), write("b", 4, 5)},
		"answers that cross":              {write("b", 2, 3), write("a", 1, 2.5), write("a", 0, 1)},
		"the middle term without a write": {write("a", 0, 1), write("a", 8, 9)},
		"waits for acknowledgements long": {write("a", 0, 1), write("b", 0, 6), write("a", 5, 7)},
	} {
		if got := Writers(aba, nil, writes); len(got) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestAWriteOfAFormerPrimaryAfterItsSuccessorsFirstIsTwoWriters(t *testing.T) {
	writes := []Write{write("a", 0, 1), write("b", 2, 3), write("a", 5, 6), write("a", 7, 8), write("b", 9, 10)}
	got := Writers([]Term{{1, "a"}, {2, "b"}}, nil, writes)
	if len(got) != 2 || got[0].Write != writes[2] || got[1].Write != writes[3] {
		t.Fatalf("%+v", got)
	}
	if Overlap(got) != 4*time.Second { // from b's acknowledgement at 3 to a's last write sent at 7
		t.Errorf("overlap %s", Overlap(got))
	}
	if !strings.Contains(got[0].Why, "a acknowledged a write that was sent 2s after b had acknowledged one") {
		t.Error(got[0].Why)
	}
}

func TestComingBackTooOftenIsTwoWriters(t *testing.T) {
	writes := []Write{write("a", 0, 1), write("b", 2, 3), write("a", 4, 5), write("b", 6, 7)}
	got := Writers(aba, nil, writes)
	if len(got) != 1 || got[0].Write != writes[3] || got[0].Overlap != time.Second {
		t.Fatalf("%+v", got)
	}
}

func TestAWriteOfAnInstanceThatNeverHadTheRoleIsAClash(t *testing.T) {
	got := Writers(aba, nil, []Write{write("c", 0, 1)})
	if len(got) != 1 || got[0].Overlap != 0 || !strings.Contains(got[0].Why, "had the role in neither") {
		t.Fatalf("%+v", got)
	}
}

func TestAWriteSentAfterTheNextGenerationWasKnownIsAClash(t *testing.T) {
	readings := []Reading{read(1, 0, 1), read(2, 2, 3)}
	two := []Term{{1, "a"}, {2, "b"}}
	if got := Writers(two, readings, []Write{write("a", 2.9, 5)}); len(got) > 0 {
		t.Errorf("sent before the answer: %+v", got)
	}
	got := Writers(two, readings, []Write{write("a", 3.5, 5)})
	if len(got) != 1 || !strings.Contains(got[0].Why, "500ms after generation 2 was known") {
		t.Errorf("%+v", got)
	}
}

func TestAWriteAcknowledgedBeforeItsInstanceHadClaimedIsAClash(t *testing.T) {
	readings := []Reading{read(1, 0, 1), read(1, 4, 5), read(2, 6, 7)}
	two := []Term{{1, "a"}, {2, "b"}}
	if got := Writers(two, readings, []Write{write("b", 4.5, 5.5)}); len(got) > 0 {
		t.Errorf("it may have claimed in between: %+v", got)
	}
	if got := Writers(two, readings, []Write{write("b", 2, 3)}); len(got) != 1 {
		t.Errorf("acknowledged before a reading of generation 1 began: %+v", got)
	}
}

// A true history with one writer at a time is never accused, however slow the answers; a write slipped in late always is.
func TestTrueHistoriesAreNeverAccusedAndAddedWritesAre(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		var terms []Term
		var readings []Reading
		var writes []Write
		now, names := 0.0, []string{"a", "b", "c"}
		for g := int64(1); g <= 6; g++ {
			name := names[r.IntN(3)]
			for g > 1 && name == terms[g-2].Instance {
				name = names[r.IntN(3)]
			}
			terms = append(terms, Term{g, name})
			for range 1 + r.IntN(8) {
				now += r.Float64()
				writes = append(writes, write(name, now-2*r.Float64(), now+2*r.Float64()))
				readings = append(readings, read(g, now-0.001, now+0.001))
			}
			now += 0.1
		}
		if got := Writers(terms, readings, writes); len(got) > 0 {
			t.Fatalf("seed %d: %+v", seed, got)
		}
		late := write(terms[0].Instance, now+1, now+2)
		if terms[0].Instance == terms[5].Instance {
			continue
		}
		if got := Writers(terms, readings, append(writes, late)); len(got) != 1 || got[0].Write != late {
			t.Fatalf("seed %d: %+v", seed, got)
		}
	}
}

func TestManyWritesAreJudgedInSeconds(t *testing.T) {
	var writes []Write
	for i := range 200_000 {
		writes = append(writes, write("a", float64(i), float64(i)+3.5))
	}
	begin := time.Now()
	if got := Writers(aba, nil, writes); len(got) > 0 {
		t.Errorf("%+v", got)
	}
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("took %s", took)
	}
}
