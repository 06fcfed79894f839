package manager

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAnEmptyValueOfASecretIsIgnored(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "control", "password")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := newSecrets(dir)
	if _, err := s.value("control", "password"); err == nil {
		t.Error("a file that is not there has a value")
	}
	write("\n")
	if v, err := s.value("control", "password"); err != nil || v != "" {
		t.Errorf("one that was always empty is %q, %v", v, err)
	}
	for _, step := range []struct{ content, want string }{{"one\n", "one"}, {"", "one"}, {"\n", "one"}, {"two", "two"}, {"", "two"}} {
		write(step.content)
		if v, err := s.value("control", "password"); err != nil || v != step.want {
			t.Errorf("%q is read as %q, %v; want %q", step.content, v, err, step.want)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if v, err := s.value("control", "password"); err != nil || v != "two" {
		t.Errorf("a key that was removed is %q, %v", v, err)
	}
}
