package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cnmsql.co/operator/e2e/lab/internal/image"
	"cnmsql.co/operator/e2e/lab/internal/state"
)

func TestUpTakesItsFlags(t *testing.T) {
	for _, tt := range []struct {
		args string
		want upOptions
	}{
		{"", upOptions{nodes: 1, certManager: true}},
		{"--nodes 3", upOptions{nodes: 3, certManager: true}},
		{"-nodes=9 -without-cert-manager", upOptions{nodes: 9}},
		{"--proxy-sync 100ms", upOptions{nodes: 1, certManager: true, proxySync: 100 * time.Millisecond}},
		{"--volumes 1024 --restart-delay 10s", upOptions{nodes: 1, certManager: true, volumes: 1024, restartDelay: 10 * time.Second}},
	} {
		if got, err := parseUp(strings.Fields(tt.args)); err != nil || got != tt.want {
			t.Errorf("%q: %+v, %v", tt.args, got, err)
		}
	}
}

func TestUpRefusesWhatItCannotDo(t *testing.T) {
	for _, args := range []string{"3", "--nodes 0", "--nodes 10", "--nodes 2 x", "--volumes -1", "--restart-delay 1ms", "--restart-delay 10m"} {
		if o, err := parseUp(strings.Fields(args)); !errors.Is(err, errUsage) {
			t.Errorf("%q: %+v, %v", args, o, err)
		}
	}
	if _, err := parseUp([]string{"--help"}); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("--help: %v", err)
	}
}

func TestImageArgumentsMakeASpec(t *testing.T) {
	out, s, err := imageSpec([]string{
		"--user", "65532:65532", "--label", "a=1", "--label", "b=x=y", "o.tar", "lab.local/x:1", "/x serve", "/x=bin/x", "/bin/sh->x",
	})
	if err != nil {
		t.Fatal(err)
	}
	if out != "o.tar" || s.User != "65532:65532" || s.Labels["b"] != "x=y" || !slices.Equal(s.Tags, []string{"lab.local/x:1"}) ||
		!slices.Equal(s.Entrypoint, []string{"/x", "serve"}) ||
		!slices.Equal(s.Files, []image.File{{Dest: "/x", Source: "bin/x"}, {Dest: "/bin/sh", Link: "x"}}) {
		t.Errorf("got %s %+v", out, s)
	}
}

func TestImageArgumentsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"o.tar", "lab.local/x:1"},
		{"o.tar", "lab.local/x", "/x"},
		{"o.tar", "lab.local/x:1", "/x", "nothing"},
	} {
		if _, s, err := imageSpec(args); !errors.Is(err, errUsage) {
			t.Errorf("%q: %+v, %v", args, s, err)
		}
	}
	if _, _, err := imageSpec([]string{"--label", "novalue", "o.tar", "x:1", "/x"}); err == nil {
		t.Error("a label without a value was accepted")
	}
}

func TestUnknownCommandsAndWrongArgumentsAreUsageErrors(t *testing.T) {
	for _, args := range [][]string{{"explode"}, {"cut"}, {"cut", "n1", "n2", "n3", "n4"}, {"heal", "n1", "n2"}, {"forward", "x"}, {"status", "x"}, {"help", "explode"}} {
		if err := dispatch(t.Context(), args); !errors.Is(err, errUsage) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestEveryCommandIsExplained(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range commands() {
		if c.help == "" || c.run == nil || seen[c.name] || isInit(c.name) {
			t.Errorf("command %+v", c)
		}
		seen[c.name] = true
	}
}

func TestCommandsOnALabThatIsNotUpSayHowToStartIt(t *testing.T) {
	l := lab{dir: state.Dir(t.TempDir())}
	for _, c := range commands() {
		args := map[string][]string{
			"status": nil, "kubeconfig": nil, "kubectl": {"get", "pods"}, "exec": {"n1", "true"}, "cut": {"n1"}, "heal": {"n1"},
			"kill": {"n1"}, "start": {"n1"}, "forward": {"127.0.0.1:0", "x:1"}, "load": {"x.tar"},
		}
		a, ok := args[c.name]
		if !ok {
			continue
		}
		if err := c.run(t.Context(), l, a); !errors.Is(err, errDown) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestThePortOfAnotherMachineIsNotForwarded(t *testing.T) {
	for _, addr := range []string{"0.0.0.0:0", ":0", "192.0.2.1:80", "nonsense"} {
		if ln, err := listenLocal(t.Context(), addr); err == nil {
			ln.Close()
			t.Errorf("%s was accepted", addr)
		}
	}
}

func TestWaitingEndsWithTheLastReasonNotWithTheClock(t *testing.T) {
	w := &waiter{say: t.Logf, alive: func() bool { return true }}
	err := w.until(t.Context(), "pigs", 300*time.Millisecond, func(ctx context.Context) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.New("no wings")
	})
	if err == nil || !strings.Contains(err.Error(), "no wings") || !strings.Contains(err.Error(), "pigs") {
		t.Errorf("error is %v", err)
	}
}

func TestWaitingEndsWhenTheLabDoes(t *testing.T) {
	w := &waiter{say: t.Logf, alive: func() bool { return false }}
	err := w.until(t.Context(), "pigs", time.Hour, func(context.Context) error { return errors.New("no") })
	if err == nil || !strings.Contains(err.Error(), "the lab ended") {
		t.Errorf("error is %v", err)
	}
}

func TestLogsOfAllPartsAreCopied(t *testing.T) {
	l := lab{dir: state.Dir(t.TempDir())}
	for _, f := range []string{"log/etcd.log", "n1/log/kubelet.log", "n2/log/kubelet.log"} {
		if err := state.Write(l.dir.Path(f), []byte(f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	to := filepath.Join(t.TempDir(), "logs")
	for range 2 { // the second time replaces the first
		if err := l.copyLogs(to); err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{"cp/etcd.log": "log/etcd.log", "n2/kubelet.log": "n2/log/kubelet.log"} {
		if b, err := os.ReadFile(filepath.Join(to, file)); err != nil || string(b) != want {
			t.Errorf("%s holds %q, %v", file, b, err)
		}
	}
}

func TestAKubernetesErrorIsShownByItsMessage(t *testing.T) {
	if got := message([]byte(`{"kind":"Status","message":"webhook not ready"}`)); got != "webhook not ready" {
		t.Errorf("got %q", got)
	}
	if got := message([]byte("plain text\n")); got != "plain text" {
		t.Errorf("got %q", got)
	}
}

func TestWhoIsNotRootIsToldAtOnce(t *testing.T) {
	for _, name := range []string{"build", "up", "down"} {
		if err := mayRun(name, 1000); err == nil || !strings.Contains(err.Error(), "root") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := errors.Join(mayRun("up", 0), mayRun("kubectl", 1000)); err != nil {
		t.Error(err)
	}
}
