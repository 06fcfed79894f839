package build

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

var fixed = time.Unix(1000000000, 0)

func mustKey(t *testing.T, tree fstest.MapFS, texts ...string) string {
	t.Helper()
	k, err := key(tree, texts...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestKeyChangesWithEverythingThatCanChangeTheResult(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s), Mode: 0o644} }
	variants := map[string]string{
		"base":             mustKey(t, fstest.MapFS{"a": file("1"), "b": file("2")}, "go1"),
		"other content":    mustKey(t, fstest.MapFS{"a": file("1"), "b": file("3")}, "go1"),
		"other name":       mustKey(t, fstest.MapFS{"a": file("1"), "c": file("2")}, "go1"),
		"moved bytes":      mustKey(t, fstest.MapFS{"a": file("12"), "b": file("")}, "go1"),
		"one more file":    mustKey(t, fstest.MapFS{"a": file("1"), "b": file("2"), "d/e": file("")}, "go1"),
		"executable":       mustKey(t, fstest.MapFS{"a": file("1"), "b": {Data: []byte("2"), Mode: 0o755}}, "go1"),
		"other text":       mustKey(t, fstest.MapFS{"a": file("1"), "b": file("2")}, "go2"),
		"text cut in half": mustKey(t, fstest.MapFS{"a": file("1"), "b": file("2")}, "g", "o1"),
	}
	seen := map[string]string{}
	for name, k := range variants {
		if other, ok := seen[k]; ok {
			t.Errorf("%s and %s have the same key", name, other)
		}
		seen[k] = name
	}
}

func TestKeyIgnoresAge(t *testing.T) {
	d := t.TempDir()
	f := filepath.Join(d, "x")
	if err := os.WriteFile(f, []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	before, err1 := key(os.DirFS(d))
	err2 := os.Chtimes(f, fixed, fixed)
	after, err3 := key(os.DirFS(d))
	if err := errors.Join(err1, err2, err3); err != nil || before != after {
		t.Errorf("%s, then %s, %v", before, after, err)
	}
}

func TestABuildThatFailsIsNotTakenAsDone(t *testing.T) {
	c := cache{t.TempDir()}
	err := c.put("parts/x", "k", func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "half"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		return errors.New("killed")
	})
	if err == nil || c.has("parts/x", "k") {
		t.Errorf("error %v, kept %t", err, c.has("parts/x", "k"))
	}
}

func TestWhatAKilledBuildLeftIsClearedByTheNext(t *testing.T) {
	c := cache{t.TempDir()}
	left := []string{filepath.Join(c.dir, "lab", partial+"1", "result"), filepath.Join(c.dir, "parts", "runc", partial+"2")}
	for _, d := range left {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := c.lock(t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	for _, d := range left {
		if _, err := os.Stat(d); !os.IsNotExist(err) {
			t.Errorf("%s is still there: %v", d, err)
		}
	}
}

func TestARefreshedResultReplacesTheOldOne(t *testing.T) {
	c := cache{t.TempDir()}
	for _, text := range []string{"old", "new"} {
		if err := c.put("mysql", "k", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, text), nil, 0o644)
		}); err != nil {
			t.Fatal(err)
		}
	}
	es, err := os.ReadDir(c.path("mysql", "k"))
	if err != nil || len(es) != 1 || es[0].Name() != "new" {
		t.Errorf("holds %v, %v", es, err)
	}
	if es, _ := os.ReadDir(filepath.Join(c.dir, "mysql")); len(es) != 1 {
		t.Errorf("left beside it: %v", es)
	}
}

func TestOnlyPackagesThatAreNotInstalledAreNamed(t *testing.T) {
	got := notInstalled([]string{"gcc", "nftables", "mmdebstrap"}, "gcc installed\nnftables config-files\n")
	if want := []string{"nftables", "mmdebstrap"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The stamped versions are a claim about what was built.
func TestStampedVersionsAreThoseOfTheModules(t *testing.T) {
	for file, lines := range map[string][]string{
		"kubernetes":  {`k8s\.io/kubernetes v` + kubernetesVersion, `k8s\.io/client-go v0\.` + strings.TrimPrefix(kubernetesVersion, "1.")},
		"runtime":     {`github\.com/containerd/containerd/v2 v` + containerdVersion},
		"runc":        {`github\.com/opencontainers/runc v` + runcVersion},
		"certmanager": {`github\.com/cert-manager/cert-manager v` + certManagerVersion, `k8s\.io/client-go v0\.` + strings.TrimPrefix(kubernetesVersion, "1.")},
	} {
		b, err := os.ReadFile("../../components/" + file + "/go.mod")
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range lines {
			if !regexp.MustCompile(`(?m)^\s*(require )?` + l + `\b`).Match(b) {
				t.Errorf("components/%s/go.mod has no %s", file, l)
			}
		}
	}
}

func TestEveryProgramInAnImageIsBuilt(t *testing.T) {
	built := map[string]bool{}
	for _, p := range parts {
		for _, g := range p.programs {
			built["/bin/"+g.out] = true
		}
	}
	for name, s := range images(sources{bin: "/bin", mysqlRoot: "/root", mysqlVersion: "9.7.4-2"}) {
		for _, f := range s.Files {
			if strings.HasPrefix(f.Source, "/bin/") && !built[f.Source] {
				t.Errorf("%s wants %s, which no recipe makes", name, f.Source)
			}
		}
	}
}

func TestTheMySQLImageIsNamedByItsVersion(t *testing.T) {
	s := images(sources{mysqlRoot: "/root", mysqlVersion: "9.7.4-2"})["3-mysql.tar"]
	if !slices.Equal(s.Tags, []string{"lab.local/mysql:9.7.4-2", "lab.local/mysql:9.7", "mysql:9.7"}) || s.User != "999:999" {
		t.Errorf("tags %q, user %q", s.Tags, s.User)
	}
}

func TestPruneKeepsWhatIsInUseAndNothingElse(t *testing.T) {
	c := cache{t.TempDir()}
	for _, kind := range []string{"parts/runc", "mysql", "lab", "launcher"} {
		for _, k := range []string{"old", "new"} {
			if err := c.put(kind, k, func(string) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.prune([]string{c.path("parts/runc", "new"), c.path("mysql", "new"), c.path("lab", "new")}, t.Logf); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"parts/runc", "mysql", "lab"} {
		if c.has(kind, "old") || !c.has(kind, "new") {
			t.Errorf("%s: old is there: %t, new is there: %t", kind, c.has(kind, "old"), c.has(kind, "new"))
		}
	}
	if !c.has("launcher", "old") {
		t.Error("what the build does not own was removed")
	}
}
