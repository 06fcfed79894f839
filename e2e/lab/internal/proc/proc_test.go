package proc

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestStatIsReadBehindAnyCommandName(t *testing.T) {
	tail := " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"
	for _, name := range []string{"(sh)", "(a b)", "(x) R 1 (y)", "())"} {
		st, start, err := parseStat("42 " + name + tail)
		if err != nil || st != 'S' || start != "4711" {
			t.Errorf("%s: state %c, start %q, %v", name, st, start, err)
		}
	}
}

func TestUnreadableStatIsAnError(t *testing.T) {
	for _, text := range []string{"", "42 (sh", "42 (sh) S 1 2"} {
		if _, _, err := parseStat(text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestIdentityIsReadBackFromItsFile(t *testing.T) {
	want, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	f := filepath.Join(t.TempDir(), "pid")
	if err := os.WriteFile(f, []byte(want.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := ReadIdentity(f)
	if err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if !got.Alive() {
		t.Error("this process is not alive")
	}
}

func TestAMissingFileIsNobody(t *testing.T) {
	id, err := ReadIdentity(filepath.Join(t.TempDir(), "none"))
	if err != nil || id.Alive() {
		t.Errorf("got %v, %v", id, err)
	}
}

func TestInitAndGarbageAreRefused(t *testing.T) {
	for _, s := range []string{"", "1 5", "0 5", "-3 5", "x 5", "77", "77 5 6"} {
		if id, err := ParseIdentity(s); err == nil {
			t.Errorf("ParseIdentity(%q) = %v", s, id)
		}
	}
}

func TestAnotherProcessWithTheSameNumberIsLeftAlone(t *testing.T) {
	id, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	id.Start += "0" // a process of this number that started at another time
	if id.Alive() {
		t.Error("taken for the same process")
	}
	if err := id.End(time.Second); err != nil { // would end the test itself
		t.Error(err)
	}
}

func TestEndKillsTheProcessAndReturnsWhenItIsGone(t *testing.T) {
	c := exec.Command("sleep", "100")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := Identify(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := id.End(10 * time.Second); err != nil {
		t.Error(err)
	}
	if id.Alive() {
		t.Error("still alive")
	}
	if err := c.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("wait says %v", err)
	}
}
