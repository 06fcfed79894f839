package sim

import (
	"iter"
	"slices"
	"time"
)

// pairBegins is when the first fault of a pair comes: the Cluster is at rest by then.
const pairBegins = 1500 * time.Millisecond

// Offsets of the second fault of a pair. What a change of primary does step by step takes less than a fifth of a second
// here, and is looked at closely; the rest are one moment within each of the shipped periods.
var (
	closely = grid(0, 200*time.Millisecond, 8*time.Millisecond)
	widely  = []time.Duration{500 * time.Millisecond, 2 * time.Second, 5500 * time.Millisecond, 9 * time.Second, 12 * time.Second, 16 * time.Second, 21 * time.Second}
	lengths = []time.Duration{700 * time.Millisecond, 25 * time.Second}
)

func grid(from, to, step time.Duration) []time.Duration {
	var out []time.Duration
	for at := from; at <= to; at += step {
		out = append(out, at)
	}
	return out
}

// Pairs yields every pair of two kinds of faults, on every choice of two instances out of three, the second at every moment of a
// grid after the first, each short and long. What begins a change of primary comes first on the finer grid.
func Pairs() iter.Seq[Plan] {
	return func(yield func(Plan) bool) {
		for _, first := range firsts() {
			for second := range seconds(first) {
				p := Plan{Config: Config{Instances: 3, SemiSync: 1}, Seed: 1, Faults: []Fault{first, second}}
				if !yield(p) {
					return
				}
			}
		}
	}
}

// firsts are all first faults. The two replicas are alike until then.
func firsts() []Fault {
	var out []Fault
	for _, kind := range Kinds {
		for a := range 2 {
			for _, length := range lengths {
				out = append(out, Fault{Kind: kind, A: a, B: a + 1, At: pairBegins, For: length})
			}
		}
	}
	return out
}

func seconds(first Fault) iter.Seq[Fault] {
	return func(yield func(Fault) bool) {
		offsets := widely
		if changesPrimary(first) {
			offsets = slices.Concat(closely, widely)
		}
		for _, kind := range Kinds {
			for a := range 3 {
				for _, length := range lengths {
					for _, offset := range offsets {
						if !yield(Fault{Kind: kind, A: a, B: (a + 1) % 3, At: first.At + offset, For: length}) {
							return
						}
					}
				}
			}
		}
	}
}

// changesPrimary tells which faults a change of primary follows at once.
func changesPrimary(f Fault) bool {
	switch f.Kind {
	case AskSwitchover:
		return f.A == 1
	case KillServer, KillContainer, DeletePod:
		return f.A == 0
	default:
		return false
	}
}
