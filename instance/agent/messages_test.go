package agent

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"

	api "cnmsql.co/operator/api/v1alpha1"
)

// logLines collects the lines of the role loop's log.
func (w *world) logLines() func(message string) (lines []string) {
	var mu sync.Mutex
	var all []string
	w.loop.o.Log = funcr.New(func(_, args string) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, args)
	}, funcr.Options{})
	return func(message string) (lines []string) {
		mu.Lock()
		defer mu.Unlock()
		return slices.DeleteFunc(slices.Clone(all), func(l string) bool { return !strings.Contains(l, message) })
	}
}

func TestTheMessageOfAReassertIsLoggedOncePerReassert(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		lines := w.logLines()
		w.primary()
		w.start()
		time.Sleep(time.Second)
		if got := lines(api.LogReassert); len(got) != 0 {
			t.Errorf("without a reason: %q", got)
		}
		w.close()
		if !w.opensWithin(10 * time.Second) {
			t.Fatal(w.reporter.Report().Role.Doing)
		}
		if got := lines(api.LogReassert); len(got) != 1 || !strings.Contains(got[0], `"site"="c-2"`) {
			t.Errorf("%q", got)
		}
	})
}

func TestTheMessageOfARefusedPrimaryIsLoggedWhenItsRecordCannotBeRead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWorld(t)
		lines := w.logLines()
		w.api.change(func(s *api.ClusterStatus) { s.PromotionGTIDExecuted = "nonsense" })
		w.primary()
		w.start()
		if w.opensWithin(20 * time.Second) {
			t.Fatal("it opened")
		}
		if got := lines(api.LogReassertRefused); len(got) != 1 || !strings.Contains(got[0], `"site"="c-2"`) {
			t.Errorf("%q", got)
		}
		if got := lines(api.LogReassert); len(got) != 0 {
			t.Errorf("re-asserted: %q", got)
		}
	})
}
