package suite

import (
	"testing"
	"time"
)

func TestKilledServerOfThePrimaryLosesNothing(t *testing.T) {
	e, key := shared(t)
	old := status(t, e, key).Status.CurrentPrimary
	gap := whileWriting(t, e, key, func() { must(t, e.KillServer(t.Context(), named(key, old))) })
	if gap > 15*time.Second {
		t.Errorf("writes stood still for %s: a dead server is known at once, no lease need expire", gap)
	}
}

func TestHungServerOfThePrimaryIsReplacedAndLosesNothing(t *testing.T) {
	e, key := shared(t)
	old := status(t, e, key).Status.CurrentPrimary
	gap := whileWriting(t, e, key, func() {
		must(t, e.HangServer(t.Context(), named(key, old)))
		_, err := e.AwaitPrimary(t.Context(), key, old, readyWithin)
		must(t, err)
	})
	if gap > 45*time.Second {
		t.Errorf("writes stood still for %s: a primary that does not serve is fenced after the 15 s of its lease", gap)
	}
}

func TestKilledServerOfAReplicaDisturbsNobody(t *testing.T) {
	e, key := shared(t)
	before := status(t, e, key).Status
	whileWriting(t, e, key, func() { must(t, e.KillServer(t.Context(), named(key, replica(t, e, key)))) })
	if after := status(t, e, key).Status; after.CurrentPrimaryGeneration != before.CurrentPrimaryGeneration {
		t.Errorf("the primary was changed: generation %d, before %d", after.CurrentPrimaryGeneration, before.CurrentPrimaryGeneration)
	}
}

func TestKilledManagerOfThePrimaryLosesNothing(t *testing.T) {
	e, key := shared(t)
	old := status(t, e, key).Status.CurrentPrimary
	whileWriting(t, e, key, func() { must(t, e.KillContainer(t.Context(), named(key, old))) })
}
