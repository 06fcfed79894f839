package observer

import (
	"context"
	"io"
	"log"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func TestReportsArriveAndChangesWakeAtOnce(t *testing.T) {
	b := newBench(t, 1)
	m := b.managers[0]
	b.follow(m)
	b.heard(m)
	b.Eventually(b.woken).WithTimeout(patience).Should(gomega.Equal(1))
	m.push(func(r *protocol.Report) { r.Server.State = protocol.ServerDown })
	b.Eventually(b.woken).WithTimeout(patience).Should(gomega.Equal(1))
	if got := b.look(m); got.Report.Server.State != protocol.ServerDown || got.Age > time.Second || !got.Asked {
		t.Errorf("sight %+v", got)
	}
	if m.subject != "cnmsql-control" {
		t.Errorf("the observer proved itself as %q", m.subject)
	}
}

func TestWhatGrowsWithTimeOrTransactionsWakesNobody(t *testing.T) {
	b := newBench(t, 1)
	m := b.managers[0]
	set := func(text string) gtid.Set {
		s, err := gtid.Parse("3e11fa47-71ca-11e1-9e33-c80aa9429562:" + text)
		check(t, err)
		return s
	}
	m.report.MySQL = &protocol.MySQL{Executed: set("1-5"), Replication: &protocol.Replication{Received: set("1-5"), IOError: "attempt 1"}}
	b.follow(m)
	b.heard(m)
	b.woken()
	m.push(func(r *protocol.Report) {
		r.MySQL = &protocol.MySQL{Executed: set("1-9"), Replication: &protocol.Replication{
			Received: set("1-9"), IOError: "attempt 2", HeartbeatAgeMillis: 1900, SecondsBehind: new(int64(3)),
		}}
		r.Lease.RenewedAgoMillis, r.Role.IntentAgeMillis, r.Role.Doing = 4000, 70, "applying the last 3 transactions"
	})
	b.Eventually(func() bool { return b.look(m).Report.MySQL.Executed.Equal(set("1-9")) }).WithTimeout(patience).Should(gomega.BeTrue())
	if n := b.woken(); n != 0 {
		t.Errorf("woken %d times", n)
	}
}

func TestNothingIsSaidBeforeTheFirstAttemptHasFinished(t *testing.T) {
	b := newBench(t, 1)
	m := b.managers[0]
	m.mute = true
	b.follow(m)
	b.Eventually(m.opened).WithTimeout(patience).Should(gomega.BeNumerically(">=", 1))
	if s := b.look(m); s.Asked && m.opened() < 2 {
		t.Errorf("sight %+v while the first attempt goes on", s)
	}
	b.silent(m)
	b.Eventually(b.woken).WithTimeout(patience).Should(gomega.Equal(1))
	target := m.target
	target.PodIP = ""
	check(t, b.observer.Follow(shop, "uid-of-c1", b.authority.issue(t, "cnmsql-control"), []Target{target}))
	if s := b.look(m); s.Asked {
		t.Error("a Pod without an address counts as asked")
	}
}

func TestStreamThatBreaksIsTriedAgainBeforeAnybodyIsSilent(t *testing.T) {
	b := newBench(t, 1)
	m := b.managers[0]
	b.follow(m)
	b.heard(m)
	before := m.opened()
	b.Eventually(b.woken).WithTimeout(patience).Should(gomega.Equal(1))
	m.endStreams()
	b.Eventually(m.opened).WithTimeout(patience).Should(gomega.Equal(before + 1))
	if b.look(m).Report == nil {
		t.Error("silent although it answered the next attempt")
	}
	if n := b.woken(); n != 0 {
		t.Errorf("woken %d times", n)
	}
}

func TestDeadManagerIsSilentAtOnceAndHeardWhenItComesBack(t *testing.T) {
	b := newBench(t, 1)
	m := b.managers[0]
	b.follow(m)
	b.heard(m)
	check(t, m.server.Close())
	b.silent(m)
	again := b.start(1)
	b.heard(again)
}

func TestStreamThatSaysNothingIsSilence(t *testing.T) {
	b := newBench(t, 1)
	m := b.managers[0]
	b.follow(m)
	b.heard(m)
	m.mu.Lock()
	m.mute = true
	m.mu.Unlock()
	b.silent(m)
}

func TestReportOfAnotherPodIsDropped(t *testing.T) {
	for name, change := range map[string]func(*protocol.Report){
		"Pod": func(r *protocol.Report) { r.PodUID = "pod-before" }, "instance": func(r *protocol.Report) { r.Instance = "c1-9" },
		"Cluster": func(r *protocol.Report) { r.ClusterUID = "uid-before" },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1)
			m := b.managers[0]
			change(&m.report)
			b.follow(m)
			b.silent(m)
			if got := b.observer.Refresh(t.Context(), shop); len(got) != 0 {
				t.Errorf("answers %v", got)
			}
		})
	}
}

func TestReplacedPodIsUnknownUntilItIsAsked(t *testing.T) {
	b := newBench(t, 1)
	m := b.managers[0]
	b.follow(m)
	b.heard(m)
	m.mu.Lock()
	m.report.PodUID, m.target.PodUID = "pod-new", "pod-new"
	m.mute = true
	m.mu.Unlock()
	b.follow(m)
	if s := b.look(m); s.Report != nil {
		t.Errorf("sight %+v", s)
	}
	m.mu.Lock()
	m.mute = false
	m.mu.Unlock()
	b.Eventually(func() bool { s := b.look(m); return s.Report != nil && s.Report.PodUID == "pod-new" }).WithTimeout(patience).Should(gomega.BeTrue())
}

func TestWrongCertificatesOnEitherSideAreSilence(t *testing.T) {
	b := newBench(t, 2)
	m := b.managers[0]
	other := newAuthority(t)
	b.followWith(other.issue(t, "cnmsql-control"), m)
	b.silent(m)
	good := b.authority.issue(t, "cnmsql-control")
	b.followWith(good, m)
	b.heard(m)
	// The other instance's address: its certificate is not this one's.
	moved := m.target
	moved.PodIP = b.managers[1].target.PodIP
	check(t, b.observer.Follow(shop, "uid-of-c1", good, []Target{moved}))
	b.silent(m)
	if b.observer.Follow(shop, "uid-of-c1", Credentials{CA: good.CA}, nil) == nil {
		t.Error("credentials without a key were taken")
	}
}

func TestRotatedCertificateConnectsAnewAndKeepsWhatIsKnown(t *testing.T) {
	b := newBench(t, 1)
	m := b.managers[0]
	b.follow(m)
	b.heard(m)
	b.Eventually(b.woken).WithTimeout(patience).Should(gomega.Equal(1))
	before := m.opened()
	b.followWith(b.authority.issue(t, "cnmsql-control-2"), m)
	if b.look(m).Report == nil {
		t.Error("the report was lost")
	}
	b.Eventually(m.opened).WithTimeout(patience).Should(gomega.Equal(before + 1))
	b.Eventually(func() string { m.mu.Lock(); defer m.mu.Unlock(); return m.subject }).WithTimeout(patience).Should(gomega.Equal("cnmsql-control-2"))
	if n := b.woken(); n != 0 {
		t.Errorf("woken %d times", n)
	}
}

func TestRefreshReturnsWhoAnswersInTime(t *testing.T) {
	b := newBench(t, 3)
	b.managers[1].slow = 5 * time.Second
	b.follow(b.managers...)
	for _, m := range b.managers {
		b.heard(m)
	}
	check(t, b.managers[2].server.Close())
	started := time.Now()
	got := b.observer.Refresh(t.Context(), shop)
	if len(got) != 1 || got["c1-1"] == nil || time.Since(started) > 2*refreshTimeout {
		t.Errorf("answers %v after %s", got, time.Since(started))
	}
	if b.look(b.managers[1]).Report == nil {
		t.Error("a slow answer is no silence while the stream goes on")
	}
}

func TestOldReportDoesNotReplaceALaterOne(t *testing.T) {
	b := newBench(t, 1)
	m := b.managers[0]
	b.follow(m)
	b.heard(m)
	w := b.observer.watcher(shop, "c1-1")
	old := m.next(nil)
	old.Sequence, old.Server.State = 0, protocol.ServerDown
	w.took(&old)
	if b.look(m).Report.Server.State == protocol.ServerDown {
		t.Error("the old report was taken")
	}
	if _, err := w.parse([]byte("{")); err == nil {
		t.Error("half a report was taken")
	}
}

func TestSetSemiSync(t *testing.T) {
	b := newBench(t, 1)
	m := b.managers[0]
	b.follow(m)
	check(t, b.observer.SetSemiSync(t.Context(), shop, "c1-1", protocol.SemiSyncSettings{WaitFor: 2, Generation: 3}))
	if len(m.settings) != 1 || m.settings[0].WaitFor != 2 {
		t.Errorf("settings %+v", m.settings)
	}
	err := b.observer.SetSemiSync(t.Context(), shop, "c1-1", protocol.SemiSyncSettings{WaitFor: 2, Generation: 2})
	if err == nil || !strings.Contains(err.Error(), "another generation") {
		t.Errorf("error %v", err)
	}
	if b.observer.SetSemiSync(t.Context(), shop, "c1-9", protocol.SemiSyncSettings{}) == nil {
		t.Error("an instance that is not followed was asked")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if b.observer.SetSemiSync(ctx, shop, "c1-1", protocol.SemiSyncSettings{Generation: 3}) == nil {
		t.Error("an ended context was ignored")
	}
}

func TestGoroutinesAndFilesAreAsManyAsInstances(t *testing.T) {
	b := newBench(t, 3)
	dead := b.managers[2]
	check(t, dead.server.Close())
	idleRoutines, idleFiles := runtime.NumGoroutine(), files(t)
	b.follow(b.managers...)
	b.heard(b.managers[0])
	b.heard(b.managers[1])
	b.silent(dead)
	routines, open := runtime.NumGoroutine(), files(t)
	for range 1000 {
		b.observer.Refresh(t.Context(), shop)
	}
	b.Eventually(runtime.NumGoroutine).WithTimeout(patience).Should(gomega.BeNumerically("<=", routines+10))
	b.Eventually(func() int { return files(t) }).WithTimeout(patience).Should(gomega.BeNumerically("<=", open+5))
	b.follow(b.managers[0])
	b.observer.Forget(shop)
	b.Eventually(runtime.NumGoroutine).WithTimeout(patience).Should(gomega.BeNumerically("<=", idleRoutines+5))
	b.Eventually(func() int { return files(t) }).WithTimeout(patience).Should(gomega.BeNumerically("<=", idleFiles+2))
}

func files(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	check(t, err)
	return len(entries)
}

func TestClosedObserverFollowsNobody(t *testing.T) {
	b := newBench(t, 1)
	m := b.managers[0]
	b.follow(m)
	b.heard(m)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- b.observer.Start(ctx) }()
	cancel()
	check(t, <-done)
	b.follow(m)
	if b.look(m).Report != nil {
		t.Error("it follows")
	}
}
