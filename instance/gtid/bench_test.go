package gtid_test

import (
	"fmt"
	"strings"
	"testing"

	"cnmsql.co/operator/instance/gtid"
)

// large has 10,000 intervals over 50 sources.
func large(t testing.TB) gtid.Set {
	var text strings.Builder
	for source := range 50 {
		fmt.Fprintf(&text, ",%08x-71ca-11e1-9e33-c80aa9429562", source)
		for i := range 200 {
			fmt.Fprintf(&text, ":%d-%d", i*10+1, i*10+5)
		}
	}
	return parse(t, text.String())
}

func TestComparingDoesNotAllocate(t *testing.T) {
	x, y := large(t), large(t)
	if n := testing.AllocsPerRun(10, func() {
		if !x.Contains(y) || !x.Equal(y) {
			t.Error("equal sets differ")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkContains(b *testing.B) {
	x, y := large(b), large(b)
	b.ReportAllocs()
	for b.Loop() {
		if !x.Contains(y) {
			b.Fatal("not contained")
		}
	}
}

func BenchmarkEqual(b *testing.B) {
	x, y := large(b), large(b)
	b.ReportAllocs()
	for b.Loop() {
		if !x.Equal(y) {
			b.Fatal("not equal")
		}
	}
}

func BenchmarkMinus(b *testing.B) {
	x, y := large(b), large(b)
	b.ReportAllocs()
	for b.Loop() {
		if !x.Minus(y).IsEmpty() {
			b.Fatal("not empty")
		}
	}
}

func BenchmarkParse(b *testing.B) {
	text := large(b).String()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := gtid.Parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
