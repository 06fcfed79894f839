package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	api "cnmsql.co/operator/api/v1alpha1"
)

func TestTheEnvironmentOfThePodIsTheConfiguration(t *testing.T) {
	pod := map[string]string{
		"CNMSQL_CLUSTER": "c", "CNMSQL_NAMESPACE": "ns", "CNMSQL_CLUSTER_UID": "u", "CNMSQL_INSTANCE": "c-1",
		"CNMSQL_POD_UID": "p", "CNMSQL_MEMORY_LIMIT": "1073741824", "CNMSQL_LOG_LEVEL": "debug",
		"CNMSQL_GRACE_SECONDS": "1800",
	}
	c, level, err := environment(func(k string) string { return pod[k] })
	if err != nil {
		t.Fatal(err)
	}
	if c.Cluster != "c" || c.Instance != "c-1" || c.PodUID != "p" || c.MemoryLimit != 1<<30 || c.Grace != 30*time.Minute || level != api.LogLevelDebug || c.Listen != "" {
		t.Errorf("configuration %+v, level %q", c, level)
	}
	if got := c.Mysqld("--x").Args; len(got) != 2 || got[0] != "mysqld" {
		t.Errorf("command %v", got)
	}
	delete(pod, "CNMSQL_MEMORY_LIMIT")
	if c, _, err := environment(func(k string) string { return pod[k] }); err != nil || c.MemoryLimit != 0 {
		t.Errorf("without a limit: %d, %v", c.MemoryLimit, err)
	}
}

func TestWhatTheEnvironmentLacksIsNamed(t *testing.T) {
	_, _, err := environment(func(string) string { return "" })
	for _, name := range []string{"CNMSQL_CLUSTER", "CNMSQL_NAMESPACE", "CNMSQL_CLUSTER_UID", "CNMSQL_INSTANCE", "CNMSQL_POD_UID"} {
		if err == nil || !strings.Contains(err.Error(), name+" is not set") {
			t.Errorf("%s is not named: %v", name, err)
		}
	}
	for _, name := range []string{"CNMSQL_MEMORY_LIMIT", "CNMSQL_GRACE_SECONDS"} {
		for _, text := range []string{"1Gi", "-1", "x"} {
			_, _, err := environment(func(k string) string {
				switch k {
				case name:
					return text
				case "CNMSQL_MEMORY_LIMIT", "CNMSQL_GRACE_SECONDS":
					return ""
				}
				return "x"
			})
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

func TestInstallCopiesTheProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "instance")
	for range 2 { // a container that is restarted installs again
		if err := command([]string{"install", path}, nil); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) || info.Mode().Perm() != 0o755 {
		t.Errorf("%d of %d bytes, mode %v", len(got), len(want), info.Mode())
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
	if err := command([]string{"install", filepath.Join(path, "x")}, nil); err == nil {
		t.Error("installed below a file")
	}
}

func TestTheVersionIsPrinted(t *testing.T) {
	var out bytes.Buffer
	if err := command([]string{"version"}, &out); err != nil || strings.TrimSpace(out.String()) == "" {
		t.Errorf("%q, %v", out.String(), err)
	}
	for _, args := range [][]string{nil, {"walk"}, {"install"}, {"run", "fast"}} {
		if err := command(args, &out); err == nil || !strings.Contains(err.Error(), "usage") {
			t.Errorf("%v: %v", args, err)
		}
	}
}

func TestTheLogLevelIsTheClusters(t *testing.T) {
	for level, want := range map[api.LogLevel]string{api.LogLevelError: "E", api.LogLevelInfo: "EI", "": "EI", api.LogLevelDebug: "EID"} {
		var out bytes.Buffer
		log := newLogger(level, &out)
		log.Error(nil, "E")
		log.Info("I")
		log.V(1).Info("D")
		got := ""
		for _, m := range []string{"E", "I", "D"} {
			if strings.Contains(out.String(), `"msg":"`+m+`"`) {
				got += m
			}
		}
		if got != want {
			t.Errorf("%q logs %q, want %q", level, got, want)
		}
	}
}
