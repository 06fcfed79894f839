package host

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMountsBelowADirectoryAreListedDeepestFirst(t *testing.T) {
	info := "22 1 0:21 / / rw - ext4 /dev/vda rw\n" +
		"30 22 0:40 / /var/tmp/lab rw - tmpfs tmpfs rw\n" +
		"31 22 0:41 / /var/tmp/labyrinth rw - tmpfs tmpfs rw\n" +
		"32 30 0:42 / /var/tmp/lab/n1/a\\040b rw - tmpfs tmpfs rw\n"
	got := mountsBelow(info, "/var/tmp/lab")
	if want := []string{"/var/tmp/lab/n1/a b", "/var/tmp/lab"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestOnlySettingsThatTheLabSavesAreRestored(t *testing.T) {
	got := parseSysctls("vm/overcommit_memory 0\nkernel/core_pattern |/bin/evil\n../x 1\n\nkernel/panic -1\n")
	want := []setting{{"vm/overcommit_memory", "0"}, {"kernel/panic", "-1"}}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestSettingsSavedBeforeACrashAreKept(t *testing.T) {
	f := filepath.Join(t.TempDir(), "sysctls")
	if err := os.WriteFile(f, []byte("kernel/panic 7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := SaveSysctls(f); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f)
	if err != nil || string(b) != "kernel/panic 7\n" {
		t.Errorf("file is now %q, %v", b, err)
	}
}

func TestNothingSavedMeansNothingToRestore(t *testing.T) {
	changed, err := RestoreSysctls(filepath.Join(t.TempDir(), "none"))
	if err != nil || changed != nil {
		t.Errorf("got %v, %v", changed, err)
	}
}

func TestADirectoryOfLeftoversIsRemovedWithAllBelowIt(t *testing.T) {
	d := filepath.Join(t.TempDir(), "lab")
	if err := os.MkdirAll(filepath.Join(d, "n1", "kubepods", "pod1"), 0o755); err != nil {
		t.Fatal(err)
	}
	if left := removeTree(d); left != 0 {
		t.Errorf("%d left", left)
	}
	if _, err := os.Stat(d); !os.IsNotExist(err) {
		t.Errorf("still there: %v", err)
	}
}
