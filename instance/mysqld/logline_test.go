package mysqld_test

import (
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"

	"cnmsql.co/operator/instance/mysqld"
)

func TestLogLinesAreTakenApart(t *testing.T) {
	for line, want := range map[string]mysqld.LogLine{
		"2026-01-02T03:04:05.678901Z 0 [ERROR] [MY-010095] [Server] Failed to access [it]": {
			Level: "Error", Code: "MY-010095", Subsystem: "Server", Message: "Failed to access [it]"},
		"2026-01-02T03:04:05.678901Z 12 [Warning] [MY-1] [InnoDB] ": {Level: "Warning", Code: "MY-1", Subsystem: "InnoDB"},
		"mysqld: Can't open shared library":                         {Message: "mysqld: Can't open shared library"},
		"2026-01-02 0 [ERROR] no code":                              {Message: "2026-01-02 0 [ERROR] no code"},
		"a b [] [] []":                                              {Message: "a b [] [] []"},
		"":                                                          {},
	} {
		if diff := cmp.Diff(want, mysqld.ParseLogLine(line)); diff != "" {
			t.Errorf("%q:\n%s", line, diff)
		}
	}
}

func FuzzAnyLineIsALogLine(f *testing.F) {
	f.Add("2026-01-02T03:04:05.678901Z 0 [ERROR] [MY-010095] [Server] text")
	f.Add("x y [")
	f.Fuzz(func(t *testing.T, line string) {
		l := mysqld.ParseLogLine(line)
		if !strings.HasSuffix(line, l.Message) {
			t.Errorf("%q became %+v", line, l)
		}
	})
}

func TestTheLastErrorIsTheOneThatSaysWhy(t *testing.T) {
	var logged []string
	s := mysqld.NewServerLog(funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{}))
	s.Take("2026-01-02T03:04:05.678901Z 0 [ERROR] [MY-000067] [Server] unknown variable 'x=1'.")
	s.Take("2026-01-02T03:04:05.678901Z 7 [ERROR] [MY-010584] [Repl] Replica I/O for channel '': Error reconnecting to source.")
	s.Take("2026-01-02T03:04:05.678901Z 0 [ERROR] [MY-010119] [Server] Aborting")
	s.Take("2026-01-02T03:04:05.678901Z 0 [System] [MY-010910] [Server] Shutdown complete")
	if got, want := s.LastError(), "MY-000067 unknown variable 'x=1'."; got != want {
		t.Errorf("last error %q, want %q", got, want)
	}
	if len(logged) != 4 {
		t.Fatalf("logged %q", logged)
	}
	if !strings.Contains(logged[1], `"error"=`) || strings.Contains(logged[2], `"error"=`) {
		t.Errorf("what replication meets is an error, and that the server gives up is none of its own: %q", logged)
	}
}
