package state

import (
	"strings"
	"testing"
)

func TestDirectoriesThatANodeHidesAreRefused(t *testing.T) {
	for _, p := range []string{"/run/lab", "/var/lib/lab", "/var/log", "/tmp", "/", "/proc/x", "/a/" + strings.Repeat("b", 80), "/a/b c"} {
		if d, err := Open(p); err == nil {
			t.Errorf("Open(%q) = %q, want an error", p, d)
		}
	}
}

func TestTheDefaultIsUsable(t *testing.T) {
	d, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	if got := d.Socket(); got != "/var/tmp/cnmsql-lab/control.sock" {
		t.Errorf("socket is %s", got)
	}
}

func TestARelativeDirectoryBecomesAbsolute(t *testing.T) {
	t.Chdir(t.TempDir())
	d, err := Open("x/lab")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(d), "/") {
		t.Errorf("%s is not absolute", d)
	}
}
