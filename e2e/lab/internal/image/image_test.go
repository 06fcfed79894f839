package image

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// tree makes a directory with a program, a symbolic link and a sticky folder.
func tree(t *testing.T, modTime time.Time) string {
	t.Helper()
	d := t.TempDir()
	for _, err := range []error{
		os.MkdirAll(filepath.Join(d, "usr/bin"), 0o755),
		os.WriteFile(filepath.Join(d, "usr/bin/prog"), []byte("#!"), 0o755),
		os.WriteFile(filepath.Join(d, "data"), bytes.Repeat([]byte("x"), 5000), 0o600),
		os.Symlink("usr/bin", filepath.Join(d, "bin")),
		os.Mkdir(filepath.Join(d, "tmp"), 0o700),
		os.Mkdir(filepath.Join(d, "spool"), 0o755),
		os.Chmod(filepath.Join(d, "spool"), 0o777|os.ModeSticky),
		os.Chtimes(filepath.Join(d, "data"), modTime, modTime),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func write(t *testing.T, s Spec) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "image.tar")
	if err := Write(out, s); err != nil {
		t.Fatal(err)
	}
	return out
}

func read(t *testing.T, r io.Reader) (map[string]*tar.Header, map[string][]byte) {
	t.Helper()
	heads, bodies := map[string]*tar.Header{}, map[string][]byte{}
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return heads, bodies
		}
		if err != nil {
			t.Fatal(err)
		}
		if heads[h.Name] != nil {
			t.Errorf("%s is in the archive twice", h.Name)
		}
		b, err := io.ReadAll(tr)
		if err != nil {
			t.Fatal(err)
		}
		heads[h.Name], bodies[h.Name] = h, b
	}
}

func spec(dir string) Spec {
	return Spec{
		Tags: []string{"lab.local/x:1", "lab.local/x:latest"}, Entrypoint: []string{"/bin/prog", "run"}, User: "999:999",
		Labels: map[string]string{"b": "2", "a": "1", "c": "3"},
		Files:  []File{{Dest: "/", Source: dir}, {Dest: "/opt/deep/prog", Source: filepath.Join(dir, "usr/bin/prog")}, {Dest: "/bin2/sh", Link: "prog"}},
	}
}

func TestTheSameFilesGiveTheSameBytesWhateverTheirAge(t *testing.T) {
	var archives [][]byte
	for _, age := range []time.Duration{time.Hour, 1000 * time.Hour} {
		b, err := os.ReadFile(write(t, spec(tree(t, time.Now().Add(-age)))))
		if err != nil {
			t.Fatal(err)
		}
		archives = append(archives, b)
	}
	if !bytes.Equal(archives[0], archives[1]) {
		t.Error("two archives of equal trees differ")
	}
}

func TestLayerHoldsWhatTheSpecSays(t *testing.T) {
	f, err := os.Open(write(t, spec(tree(t, time.Now()))))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, outer := read(t, f)
	var ms []manifest
	if err := json.Unmarshal(outer["manifest.json"], &ms); err != nil || len(ms) != 1 {
		t.Fatalf("manifest %s: %v", outer["manifest.json"], err)
	}
	heads, bodies := read(t, bytes.NewReader(outer[ms[0].Layers[0]]))
	for name, mode := range map[string]int64{"usr/bin/prog": 0o755, "data": 0o600, "spool/": 0o1777, "tmp/": 0o1777, "opt/deep/": 0o755, "opt/deep/prog": 0o755} {
		if h := heads[name]; h == nil || h.Mode != mode || h.Uid != 0 || h.Gid != 0 {
			t.Errorf("%s: %+v, want mode %o and root", name, h, mode)
		}
	}
	for name, target := range map[string]string{"bin": "usr/bin", "bin2/sh": "prog"} {
		if h := heads[name]; h == nil || h.Linkname != target {
			t.Errorf("%s is no link to %s", name, target)
		}
	}
	if len(bodies["data"]) != 5000 {
		t.Errorf("data has %d bytes", len(bodies["data"]))
	}
	checkConfig(t, outer[ms[0].Config], ms[0].Layers[0])
}

func checkConfig(t *testing.T, b []byte, layer string) {
	t.Helper()
	var c configFile
	if err := json.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(c.Config.Entrypoint, []string{"/bin/prog", "run"}) || c.Config.User != "999:999" || c.Config.Labels["b"] != "2" {
		t.Errorf("config is %s", b)
	}
	if want := "sha256:" + strings.TrimSuffix(layer, "/layer.tar"); c.RootFS.DiffIDs[0] != want {
		t.Errorf("diff id %s, want %s", c.RootFS.DiffIDs[0], want)
	}
}

func TestTagsAreReadBack(t *testing.T) {
	got, err := Tags(write(t, spec(tree(t, time.Now()))))
	if err != nil || !slices.Equal(got, []string{"lab.local/x:1", "lab.local/x:latest"}) {
		t.Errorf("tags %q, %v", got, err)
	}
}

func TestAFileThatIsNoImageIsRefused(t *testing.T) {
	p := filepath.Join(t.TempDir(), "x.tar")
	if err := os.WriteFile(p, make([]byte, 1024), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Tags(p); err == nil || !strings.Contains(err.Error(), "no docker archive") {
		t.Errorf("error is %v", err)
	}
}

func TestAFailedWriteLeavesTheOldImageAndNothingElse(t *testing.T) {
	s := spec(tree(t, time.Now()))
	out := write(t, s)
	before, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	s.Files = append(s.Files, File{Dest: "/y", Source: "/does/not/exist"})
	if err := Write(out, s); err == nil {
		t.Fatal("a missing file was accepted")
	}
	after, err := os.ReadFile(out)
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the old image changed: %v", err)
	}
	es, err := os.ReadDir(filepath.Dir(out))
	if err != nil || len(es) != 1 {
		t.Errorf("files beside it: %v, %v", es, err)
	}
}

func TestFileArguments(t *testing.T) {
	for arg, want := range map[string]File{
		"/a=b":          {Dest: "/a", Source: "b"},
		"/a=/x/y=z":     {Dest: "/a", Source: "/x/y=z"},
		"/bin/sh->prog": {Dest: "/bin/sh", Link: "prog"},
	} {
		if got, err := ParseFile(arg); err != nil || got != want {
			t.Errorf("ParseFile(%q) = %+v, %v", arg, got, err)
		}
	}
	for _, arg := range []string{"", "/a", "/a=", "a=b", "->x", "/a->"} {
		if got, err := ParseFile(arg); err == nil {
			t.Errorf("ParseFile(%q) = %+v, want an error", arg, got)
		}
	}
}

func ExampleParseFile() {
	f, _ := ParseFile("/manager=bin/manager")
	fmt.Println(f.Dest, f.Source)
	// Output: /manager bin/manager
}
