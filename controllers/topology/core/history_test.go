package core

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	api "cnmsql.co/operator/api/v1alpha1"
)

// remember writes a failover to c1-1 in a generation, so long ago, into the status; annotated into the annotations.
func (w *world) remember(ago time.Duration, generation int64) *world {
	at := metav1.NewTime(now.Add(-ago))
	st := &w.Cluster.Status
	st.LastFailoverTimestamp, st.LastFailoverTarget, st.LastFailoverGeneration = &at, "c1-1", generation
	return w
}

func (w *world) annotated(ago time.Duration, generation int64) *world {
	w.annotate((&FailoverRecord{At: now.Add(-ago), Target: "c1-1", Generation: generation}).Annotations())
	return w
}

func (w *world) without(annotation string) *world {
	w.annotate(map[string]*string{annotation: nil})
	return w
}

func (w *world) with(annotation, value string) *world {
	w.annotate(map[string]*string{annotation: &value})
	return w
}

func TestOfTwoCopiesOfTheHistoryTheLaterCountsAndEachIsJudgedAlone(t *testing.T) {
	type kept struct {
		ago        time.Duration
		generation int64
	}
	none := kept{}
	for _, tc := range []struct {
		name  string
		world *world
		keeps kept
		warns string
	}{
		{"there was none", sound(), none, ""},
		{"the status alone", sound().remember(time.Hour, 3), kept{time.Hour, 3}, ""},
		{"the annotations alone", sound().annotated(time.Hour, 3), kept{time.Hour, 3}, ""},
		{"both the same", sound().remember(time.Hour, 3).annotated(time.Hour, 3), kept{time.Hour, 3}, ""},
		{"the annotations of a later generation", sound().remember(time.Minute, 2).annotated(time.Hour, 3), kept{time.Hour, 3}, ""},
		{"the status of a later generation", sound().remember(time.Hour, 3).annotated(time.Minute, 2), kept{time.Hour, 3}, ""},
		{"the annotations of a later instant", sound().remember(time.Hour, 3).annotated(time.Minute, 3), kept{time.Minute, 3}, ""},
		{"a status from when no generation was kept", sound().remember(time.Hour, 0), kept{time.Hour, 0}, ""},
		{"the annotations are no time", sound().remember(time.Hour, 3).annotated(time.Minute, 9).with(api.AnnotationLastFailover, "yesterday"), kept{time.Hour, 3}, "in the annotations is dropped"},
		{"the annotations are half", sound().remember(time.Hour, 3).annotated(time.Minute, 9).without(api.AnnotationLastFailoverTarget), kept{time.Hour, 3}, "have no " + api.AnnotationLastFailoverTarget},
		{"the annotations lack the generation", sound().annotated(time.Minute, 9).without(api.AnnotationLastFailoverGeneration), none, "have no " + api.AnnotationLastFailoverGeneration},
		{"the annotations lack the time", sound().annotated(time.Minute, 9).without(api.AnnotationLastFailover), none, "have no " + api.AnnotationLastFailover},
		{"the generation is no number", sound().remember(time.Hour, 3).annotated(time.Minute, 9).with(api.AnnotationLastFailoverGeneration, "nine"), kept{time.Hour, 3}, "give no number"},
		{"the target is of another Cluster", sound().remember(time.Hour, 3).annotated(time.Minute, 9).with(api.AnnotationLastFailoverTarget, "c2-1"), kept{time.Hour, 3}, `names no instance of this Cluster: "c2-1"`},
		{"the status is half", func() *world {
			w := sound().remember(time.Minute, 9).annotated(time.Hour, 3)
			w.Cluster.Status.LastFailoverTarget = ""
			return w
		}(), kept{time.Hour, 3}, "has no lastFailoverTarget"},
		{"the status is far ahead", sound().remember(-6*time.Hour, 9).annotated(time.Hour, 3), kept{time.Hour, 3}, "in the status is dropped: it is 6h0m0s in the future"},
		{"the status alone, far ahead", sound().remember(-6*time.Hour, 3), none, "in the future"},
		{"both are far ahead, as a clock that was wrong leaves them", sound().remember(-6*time.Hour, 3).annotated(-6*time.Hour, 3), none, "in the future"},
		{"a little ahead", sound().remember(-4*time.Minute, 3), kept{-4 * time.Minute, 3}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := Decide(tc.world.Snapshot)
			var got kept
			if at := d.Status.LastFailoverTimestamp; at != nil {
				got = kept{now.Sub(at.Time), d.Status.LastFailoverGeneration}
			}
			if got != tc.keeps {
				t.Errorf("kept %+v, want %+v", got, tc.keeps)
			}
			warned := strings.Join(events(d), "; ")
			if (warned == "") != (tc.warns == "") || !strings.Contains(warned, tc.warns) {
				t.Errorf("warned of %q, want %q", warned, tc.warns)
			}
			tc.world.then(d)
			again := Decide(tc.world.Snapshot)
			if len(again.Events)+len(again.Actions) > 0 || !cmp.Equal(again.Status, tc.world.Cluster.Status) {
				t.Errorf("it goes on: %q %q\n%s", events(again), actions(again), cmp.Diff(tc.world.Cluster.Status, again.Status))
			}
			_, there := tc.world.Cluster.Annotations[api.AnnotationLastFailover]
			if there != (tc.keeps != none) {
				t.Errorf("annotations %v", tc.world.Cluster.Annotations)
			}
		})
	}
}

func TestWhateverTheCopiesSayTheyAreOneAfterTwoPasses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := sound().braked(10*time.Minute, 0)
		ago := rapid.Int64Range(-7200, 7200)
		if rapid.Bool().Draw(t, "in the status") {
			w.remember(time.Duration(ago.Draw(t, "ago"))*time.Second, rapid.Int64Range(0, 5).Draw(t, "generation"))
			if rapid.Bool().Draw(t, "half") {
				w.Cluster.Status.LastFailoverTarget = ""
			}
		}
		text := rapid.SampledFrom([]string{"", "nonsense", "c1-2", "3", "2030-01-02T03:00:00Z", "2031-01-02T03:00:00Z"})
		for _, key := range []string{api.AnnotationLastFailover, api.AnnotationLastFailoverTarget, api.AnnotationLastFailoverGeneration} {
			if rapid.Bool().Draw(t, key) {
				w.with(key, text.Draw(t, "value of "+key))
			}
		}
		w.then(Decide(w.Snapshot))
		d := Decide(w.Snapshot)
		if len(d.Events)+len(d.Actions) > 0 || !cmp.Equal(d.Status, w.Cluster.Status) {
			t.Errorf("it goes on: %q %q\n%s", events(d), actions(d), cmp.Diff(w.Cluster.Status, d.Status))
		}
	})
}

func TestAPromotionIsRecordedTwiceWhenItsGenerationHasMoved(t *testing.T) {
	w := failingOver()
	if d := Decide(w.Snapshot); d.Status.LastFailoverTimestamp != nil {
		t.Error("recorded before the promotion is confirmed")
	}
	d := Decide(w.claimed().Snapshot)
	at := d.Status.LastFailoverTimestamp
	if at == nil || !at.Time.Equal(now) || d.Status.LastFailoverTarget != "c1-2" || d.Status.LastFailoverGeneration != 4 {
		t.Errorf("status: %v, %s, %d", at, d.Status.LastFailoverTarget, d.Status.LastFailoverGeneration)
	}
	last := d.Actions[len(d.Actions)-1]
	if last.Kind != RecordFailover || *last.Record != (FailoverRecord{At: now, Target: "c1-2", Generation: 4}) {
		t.Errorf("action %+v", last)
	}
	want := map[string]string{api.AnnotationLastFailover: "2030-01-02T03:04:05Z", api.AnnotationLastFailoverTarget: "c1-2", api.AnnotationLastFailoverGeneration: "4"}
	if got := w.then(d).Cluster.Annotations; !cmp.Equal(got, want) {
		t.Errorf("annotations %v", got)
	}
}

func TestAPromotionTellsItsCauseAndHowLongItTook(t *testing.T) {
	w := failingOver()
	w.Cluster.Status.PrimaryTransition.Cause = api.CauseFailed
	since(w, 5*time.Second)
	if d := Decide(w.Snapshot); d.Promoted != nil {
		t.Errorf("promoted %+v", d.Promoted)
	}
	d := Decide(w.claimed().Snapshot)
	if d.Promoted == nil || *d.Promoted != (Promotion{Cause: api.CauseFailed, Took: 5 * time.Second}) {
		t.Errorf("promoted %+v", d.Promoted)
	}
	if again := Decide(w.then(d).Snapshot); again.Promoted != nil {
		t.Errorf("told twice: %+v", again.Promoted)
	}
}

func TestOnlyTheOperatorsOwnAnswersToAFailureAreRecorded(t *testing.T) {
	for cause, recorded := range map[api.TransitionCause]bool{
		api.CauseAsked: false, api.CauseStopping: false, api.CausePreferred: false, api.CauseUnreachable: true, "": false,
	} {
		w := moving().stepDown("1:1-100")
		w.Cluster.Status.PrimaryTransition.Cause = cause
		if d := Decide(w.claimed().Snapshot); (d.Status.LastFailoverTimestamp != nil) != recorded {
			t.Errorf("%q: %v", cause, d.Status.LastFailoverTimestamp)
		}
	}
}
