package mysql_test

import (
	"testing"
	"time"

	"github.com/onsi/gomega"

	"cnmsql.co/operator/instance/internal/mysqltest"
)

// From the role's move on a follows b.
func aCleanStopWaitsForNobody(t *testing.T, p *pair) {
	stop := func(s *mysqltest.Server) {
		t.Helper()
		idle := s.DB(t)
		must(t, idle.PingContext(t.Context()))
		read(t, s)
		began := time.Now()
		must(t, s.Supervisor.Stop(t.Context()))
		took := time.Since(began)
		t.Logf("%s stopped after %v", s.Name, took)
		if exit := s.Supervisor.State().LastExit; exit != "exit code 0" {
			t.Errorf("%s: %s", s.Name, exit)
		}
		// It would take 10 s with a replica, 3 s with an idle client.
		if took > 6*time.Second {
			t.Errorf("%s took %v to stop", s.Name, took)
		}
		s.Run(t)
	}
	connected := func() bool { return read(t, p.a).Replication.Connected }
	must(t, p.b.SQL.Demote(t.Context(), demoteNow))
	stop(p.b)
	p.Eventually(connected).WithTimeout(patience).Should(gomega.BeTrue(), "the replica comes back by itself")
	stop(p.a)
	must(t, p.a.SQL.StartReplica(t.Context()))
	p.Eventually(connected).WithTimeout(patience).Should(gomega.BeTrue())
}
