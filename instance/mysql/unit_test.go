package mysql_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"cnmsql.co/operator/instance/flavor"
	"cnmsql.co/operator/instance/mysql"
	"cnmsql.co/operator/instance/protocol"
)

func TestTheAgeOfTheLastSignOfLife(t *testing.T) {
	start := time.Now()
	for _, c := range []struct {
		name   string
		micros string
		want   int64
	}{
		{"is the server's figure", "1500999", 1500},
		{"is -1 when there never was one", mysql.Never, -1},
		{"is zero right after it", "0", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := new(mysql.Age).Of(c.micros, "1", start)
			if err != nil || got != c.want {
				t.Errorf("got %d, %v, want %d", got, err, c.want)
			}
		})
	}
}

func TestASilentSourceAgesEvenWhenTheClockIsSetBack(t *testing.T) {
	start := time.Now()
	var a mysql.Age
	at := func(after time.Duration, micros, mark string) int64 {
		t.Helper()
		got, err := a.Of(micros, mark, start.Add(after))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	at(0, "1000000", "beat 7")
	// The clock goes back an hour: the last heartbeat now lies in the future.
	if got := at(10*time.Second, "-3590000000", "beat 7"); got != 10_000 {
		t.Errorf("a source silent for 10 s has age %d ms", got)
	}
	if got := at(11*time.Second, "-3600000000", "beat 8"); got != 0 {
		t.Errorf("a source that was just heard has age %d ms", got)
	}
}

func TestAnAgeThatIsNoNumberIsAnError(t *testing.T) {
	if _, err := new(mysql.Age).Of("", "", time.Now()); err == nil {
		t.Error("no error")
	}
}

func TestASyntaxErrorDoesNotQuoteTheStatement(t *testing.T) {
	err := mysql.Withheld(&driver.MySQLError{Number: 1064, Message: "near 'IDENTIFIED BY 'secret''"})
	if strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
	other := &driver.MySQLError{Number: 1290, Message: "read-only"}
	if got := mysql.Withheld(other); !errors.Is(got, other) {
		t.Errorf("another error became %v", got)
	}
}

func TestAGTIDSetThatCannotBeReadIsAnError(t *testing.T) {
	good := map[string]string{"uuid": "u", "ro": "1", "sro": "1", "executed": "", "purged": ""}
	if _, err := mysql.Globals(good); err != nil {
		t.Fatal(err)
	}
	for _, column := range []string{"executed", "purged"} {
		bad := map[string]string{}
		maps.Copy(bad, good)
		bad[column] = "no set"
		if m, err := mysql.Globals(bad); err == nil || m != nil {
			t.Errorf("an unreadable %s set gave %+v, %v", column, m, err)
		}
	}
}

func TestSemiSyncIsReadFromWhatTheServerHas(t *testing.T) {
	server, err := flavor.Detect("9.7.4")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(protocol.SemiSync{SourceMissing: true, ReplicaMissing: true}, mysql.SemiSyncOf(server.SemiSync, nil, nil)); diff != "" {
		t.Errorf("without plugins:\n%s", diff)
	}
	got := mysql.SemiSyncOf(server.SemiSync,
		map[string]string{"rpl_semi_sync_source_enabled": "ON", "rpl_semi_sync_replica_enabled": "OFF", "rpl_semi_sync_source_wait_for_replica_count": "2"},
		map[string]string{"Rpl_semi_sync_source_status": "ON", "Rpl_semi_sync_source_clients": "3", "Rpl_semi_sync_source_wait_sessions": "4", "Rpl_semi_sync_replica_status": "OFF"})
	want := protocol.SemiSync{SourceEnabled: true, SourceActive: true, Clients: 3, WaitFor: 2, Waiting: 4}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAServerThatIsNotThereIsAnErrorInTime(t *testing.T) {
	s := mysql.Open(mysql.Options{Socket: filepath.Join(t.TempDir(), "no.sock"), User: "x"})
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := s.WaitReady(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("waiting for a server that is not there: %v", err)
	}
	if _, err := s.Read(t.Context()); err == nil {
		t.Error("facts of a server that is not there")
	}
}

func TestAPasswordThatCannotBeReadIsSaid(t *testing.T) {
	s := mysql.Open(mysql.Options{Socket: filepath.Join(t.TempDir(), "no.sock"), User: "x", Password: func() (string, error) {
		return "", errors.New("no such secret")
	}})
	defer s.Close()
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "no such secret") {
		t.Error(err)
	}
}
