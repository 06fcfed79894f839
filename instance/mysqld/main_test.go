package mysqld_test

import (
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"cnmsql.co/operator/instance/mysqld"
)

// The test program plays the server when this variable names a part.
const partVariable = "MYSQLD_TEST_PART"

func TestMain(m *testing.M) {
	if part := os.Getenv(partVariable); part != "" {
		play(part)
		return
	}
	os.Exit(m.Run())
}

func play(part string) {
	name, argument, _ := strings.Cut(part, ":")
	switch name {
	case "exit": // with a code
		var code int
		_, _ = fmt.Sscan(argument, &code)
		os.Exit(code)
	case "serve": // until SIGTERM, then exit 0
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		ready()
		<-term
	case "stubborn": // ignores SIGTERM
		signal.Ignore(syscall.SIGTERM)
		ready()
		forever()
	case "environment":
		say(os.Getenv("MYSQLD_PARENT_PID") + " " + fmt.Sprint(os.Getppid()))
	case "print":
		fmt.Print(argument)
	case "orphan": // leaves a child behind that ends a little later
		child("exit-after:50ms")
	case "family": // a child that would outlive it
		child("serve")
		say("ready")
		forever()
	case "exit-after":
		d, _ := time.ParseDuration(argument)
		time.Sleep(d)
	}
}

// forever waits without an end. (Go ends a program in which every goroutine waits for another.)
func forever() {
	for {
		_ = syscall.Pause()
	}
}

// ready says so, and on a file that it was given for that.
func ready() {
	say("ready")
	_, _ = os.NewFile(3, "ready").Write([]byte{1}) // fails where nobody gave it
}

func say(line string) { fmt.Println(line) }

func child(part string) {
	_, err := syscall.ForkExec("/proc/self/exe", []string{"child"}, &syscall.ProcAttr{
		Env:   []string{partVariable + "=" + part},
		Files: []uintptr{0, 1, 2},
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// reaper is the one of this process.
var reaper = sync.OnceValue(func() *mysqld.Reaper { return mysqld.NewReaper(logr.Discard()) })

func command(part string) mysqld.Command {
	return mysqld.Command{Args: []string{"/proc/self/exe"}, Env: append(os.Environ(), partVariable+"="+part)}
}

// lines collects the output of a process.
type lines struct{ ch chan string }

func newLines() *lines { return &lines{ch: make(chan string, 100)} }

func (l *lines) take(s string) { l.ch <- s }

func (l *lines) next(t *testing.T) string {
	t.Helper()
	select {
	case s := <-l.ch:
		return s
	case <-time.After(10 * time.Second):
		t.Fatal("no output")
		return ""
	}
}

func startProcess(t *testing.T, part string) (*mysqld.Process, *lines) {
	t.Helper()
	out := newLines()
	c := command(part)
	c.Output = out.take
	p, err := reaper().Start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Kill() })
	return p, out
}
