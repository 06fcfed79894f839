package mysqld_test

import (
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"cnmsql.co/operator/instance/mysqld"
)

func TestTheExitCodeOfAProcessIsKnown(t *testing.T) {
	p, _ := startProcess(t, "exit:7")
	exit, err := p.Wait(t.Context())
	if err != nil || exit.Code != 7 || exit.Signal != 0 || exit.String() != "exit code 7" {
		t.Errorf("exit %v, %v", exit, err)
	}
}

func TestTheEndOfAKilledProcessIsNoticedWithinMilliseconds(t *testing.T) {
	p, out := startProcess(t, "serve")
	out.next(t)
	began := time.Now()
	if err := syscall.Kill(p.Pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.Gone()
	took := time.Since(began)
	t.Logf("noticed after %v", took)
	if took > 250*time.Millisecond {
		t.Errorf("noticed only after %v", took)
	}
	exit, err := p.Wait(t.Context())
	if err != nil || exit.Signal != syscall.SIGKILL || exit.String() != "signal 9 (killed)" {
		t.Errorf("exit %v, %v", exit, err)
	}
}

func TestAProcessThatObeysIsStoppedCleanly(t *testing.T) {
	p, out := startProcess(t, "serve")
	out.next(t)
	exit, err := p.Stop(t.Context())
	if err != nil || exit.Code != 0 {
		t.Errorf("exit %v, %v", exit, err)
	}
}

func TestAProcessThatDoesNotObeyIsKilledAtTheDeadline(t *testing.T) {
	p, out := startProcess(t, "stubborn")
	out.next(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	exit, err := p.Stop(ctx)
	if err != nil || exit.Signal != syscall.SIGKILL {
		t.Errorf("exit %v, %v", exit, err)
	}
	if ctx.Err() == nil {
		t.Error("killed before the deadline")
	}
}

func TestAStoppedProcessIsKilledAtTheDeadline(t *testing.T) {
	p, out := startProcess(t, "serve")
	out.next(t)
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if exit, err := p.Stop(ctx); err != nil || exit.Signal != syscall.SIGKILL {
		t.Errorf("exit %v, %v", exit, err)
	}
}

func TestOrphansAreReaped(t *testing.T) {
	g := gomega.NewWithT(t)
	before := reaper().Orphans()
	p, _ := startProcess(t, "orphan")
	_, err := p.Wait(t.Context())
	g.Expect(err).NotTo(gomega.HaveOccurred())
	g.Eventually(reaper().Orphans).WithTimeout(10 * time.Second).Should(gomega.BeNumerically(">", before))
	g.Expect(zombies(t)).To(gomega.BeEmpty())
}

// zombies are the children of this process that ended and were not waited for.
func zombies(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(os.Getpid()) {
			out = append(out, e.Name())
		}
	}
	return out
}

func TestKillEndsTheWholeGroup(t *testing.T) {
	g := gomega.NewWithT(t)
	before := reaper().Orphans()
	p, out := startProcess(t, "family")
	out.next(t)
	out.next(t) // both are there
	g.Expect(p.Kill()).To(gomega.Succeed())
	<-p.Gone()
	g.Eventually(reaper().Orphans).WithTimeout(10 * time.Second).Should(gomega.BeNumerically(">", before))
}

func TestASignalToAProcessThatIsGoneIsNoErrorAndGoesNowhere(t *testing.T) {
	p, _ := startProcess(t, "exit:0")
	<-p.Gone()
	if err := errors.Join(p.Signal(syscall.SIGTERM), p.Kill()); err != nil {
		t.Error(err)
	}
	if exit, err := p.Stop(t.Context()); err != nil || exit.Code != 0 {
		t.Errorf("exit %v, %v", exit, err)
	}
}

func TestAProgramThatIsMissingIsAnError(t *testing.T) {
	for _, name := range []string{"/no/such/program", "no-such-program"} {
		if _, err := reaper().Start(mysqld.Command{Args: []string{name}}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("starting %s: %v", name, err)
		}
	}
	if _, err := reaper().Start(mysqld.Command{}); err == nil {
		t.Error("nothing was started without an error")
	}
}

func TestTheLastLineArrivesEvenWithoutItsEnd(t *testing.T) {
	p, out := startProcess(t, "print:one\ntwo")
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, b := out.next(t), out.next(t); a != "one" || b != "two" {
		t.Errorf("lines %q and %q", a, b)
	}
}

func TestAnOverlongLineIsCutAndTheNextOneArrives(t *testing.T) {
	p, out := startProcess(t, "print:"+strings.Repeat("x", 100<<10)+"\nnext")
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, b := out.next(t), out.next(t); len(a) != 64<<10 || b != "next" {
		t.Errorf("lines of %d bytes and %q", len(a), b)
	}
}

func TestOutputThatSomebodyElseHoldsOpenDelaysTheEndOnlyALittle(t *testing.T) {
	// The child inherits the pipe and ends much later than its parent.
	p, _ := startProcess(t, "orphan")
	began := time.Now()
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("waited %v", took)
	}
}

func TestManyProcessesEndAndNoneIsLost(t *testing.T) {
	var list []*mysqld.Process
	for range 30 {
		p, _ := startProcess(t, "exit:3")
		list = append(list, p)
	}
	for _, p := range list {
		if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 3 {
			t.Errorf("exit %v, %v", exit, err)
		}
	}
	if z := zombies(t); len(z) > 0 {
		t.Errorf("zombies %v", z)
	}
}
