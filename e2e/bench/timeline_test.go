package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func said(t *timeline) []string {
	var lines []string
	for _, e := range t.events {
		lines = append(lines, e.who+": "+e.what)
	}
	return lines
}

func TestOutcomesHaveALineForEachChangeAndForEachSlowAnswer(t *testing.T) {
	line := newTimeline(true)
	o := line.outcomes("writer")
	now := line.begin
	quick := func(err error) { o.add(now, now.Add(time.Millisecond), err) }
	quick(nil)
	quick(nil)
	quick(nil)
	quick(errors.New("Error 1290 (HY000): no"))
	o.add(now, now.Add(350*time.Millisecond), nil)
	quick(nil)
	want := []string{
		"writer: acknowledged",
		"writer: refused: read-only (after 3 × acknowledged)",
		"writer: acknowledged, 350 ms after it was sent",
	}
	if got := said(line); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestObserverTellsOfChangesAndOfNewObjectsButNotOfWhatWasThere(t *testing.T) {
	line := newTimeline(true)
	o := newObserver(line)
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(line.begin.Add(-time.Minute))}}
	young := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(line.begin.Add(time.Minute))}}
	o.see("a", old, []aspect{{"role", "primary"}, {"Ready", "True"}})
	o.see("a", old, []aspect{{"role", "primary"}, {"Ready", "False"}})
	o.see("a", old, []aspect{{"role", ""}, {"Ready", "False"}})
	o.see("b", young, []aspect{{"role", "replica"}, {"Ready", ""}})
	want := []string{"a: Ready: True → False", "a: role: primary → none", "b: role: none → replica"}
	if got := said(line); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestTimelineIsPrintedFromTheDisturbanceOnInMillisecondsOfThePause(t *testing.T) {
	line := newTimeline(true)
	at := func(ms int) time.Time { return line.begin.Add(time.Duration(ms) * time.Millisecond) }
	line.addAt(at(30), "operator", "decided")
	line.addAt(at(1), "writer", "acknowledged")
	line.addAt(at(10), "bench", "begins")
	var b strings.Builder
	line.print(&b, "heading", at(20))
	got := strings.Split(strings.TrimSpace(b.String()), "\n")
	want := []string{"-10.0 ms bench begins", "10.0 ms operator decided"}
	for i, text := range got[len(got)-2:] {
		if strings.Join(strings.Fields(text), " ") != want[i] {
			t.Errorf("line %d: %q, want %q", i, text, want[i])
		}
	}
	if strings.Contains(b.String(), "writer") {
		t.Error("what was before the disturbance is printed")
	}
}

func TestNoTimelineCollectsNothing(_ *testing.T) {
	line := newTimeline(false)
	line.add("a", "b")
	line.outcomes("c").add(time.Now(), time.Now(), nil)
}
