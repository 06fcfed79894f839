package judge

import (
	"slices"
	"testing"
	"time"
)

func cluster(revision int64, primary string, generation int64) Change {
	return Change{Revision: revision, Seen: at(float64(revision)), CurrentPrimary: primary, Generation: generation}
}

func pod(revision int64, name string, primary bool) Change {
	return Change{Revision: revision, Seen: at(float64(revision)), Pod: name, UID: name + "-uid", Primary: primary}
}

// moved is a switchover from a to b as it should be.
func moved() []Change {
	return []Change{
		cluster(1, "", 0), pod(2, "a", false), pod(3, "b", false), cluster(4, "a", 1), pod(5, "a", true), pod(6, "a", true),
		cluster(10, "b", 2), pod(13, "a", false), pod(14, "b", true),
	}
}

func TestASwitchoverBreaksNoRule(t *testing.T) {
	history := moved()
	slices.Reverse(history) // watches of two kinds deliver in any order
	if got := Generations(history); len(got) > 0 {
		t.Error(got)
	}
	broken, stale := Labels(history)
	if len(broken) > 0 || stale != 3*time.Second {
		t.Errorf("%v, stale for %s", broken, stale)
	}
	if got := Terms(history); !slices.Equal(got, []Term{{1, "a"}, {2, "b"}}) {
		t.Error(got)
	}
}

func TestWrongLabelsAreFound(t *testing.T) {
	for want, history := range map[string][]Change{
		"the primary's label is on a and b":                          {cluster(1, "a", 1), pod(2, "a", true), cluster(3, "b", 2), pod(4, "b", true)},
		"the primary's label was given to b while a was the primary": {cluster(1, "a", 1), pod(2, "b", true)},
	} {
		if got, _ := Labels(history); !slices.Equal(got, []string{want}) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestALabelWithinASuccessorOfTheSameNameIsASecondOne(t *testing.T) {
	again := pod(3, "a", true)
	again.UID = "another"
	if got, _ := Labels([]Change{cluster(1, "a", 1), pod(2, "a", true), again}); len(got) != 1 {
		t.Error(got)
	}
}

func TestWrongGenerationsAreFound(t *testing.T) {
	for want, history := range map[string][]Change{
		"generation 3 followed 1":                                    {cluster(1, "a", 1), cluster(2, "b", 3)},
		"generation 1 followed 2":                                    {cluster(1, "a", 2), cluster(2, "a", 1)},
		"the primary became b instead of a in the same generation 1": {cluster(1, "a", 1), pod(2, "a", true), cluster(3, "b", 1)},
	} {
		if got := Generations(history); !slices.Equal(got, []string{want}) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
