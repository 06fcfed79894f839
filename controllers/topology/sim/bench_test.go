package sim

import "testing"

// A million schedules in ten minutes on two cores are 1.2 ms for each.
func BenchmarkSchedule(b *testing.B) {
	sets := &Sets{}
	seed := uint64(1)
	for b.Loop() {
		if r := Run(Random(seed, nil), sets, nil); r.Violation != nil {
			b.Fatalf("seed %d: %s", seed, r.Violation)
		}
		seed++
	}
}
