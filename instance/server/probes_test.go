package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cnmsql.co/operator/instance/gtid"
	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/server"
)

type present struct{ report protocol.Report }

func (p *present) Report() protocol.Report { return p.report }

func replica() protocol.Report {
	return protocol.Report{
		Instance: "c-2", ReadAt: time.Now(), Server: protocol.Server{State: protocol.ServerRunning},
		MySQL: &protocol.MySQL{ReadOnly: true, SuperReadOnly: true, Replication: &protocol.Replication{
			SourceHost: "c-1.ns.svc", IORunning: true, SQLRunning: true,
		}},
		Role: protocol.Role{Name: "replica"},
	}
}

func primary() protocol.Report {
	r := replica()
	r.Instance, r.Role.Name = "c-1", "primary"
	r.MySQL = &protocol.MySQL{}
	return r
}

func TestReadinessSaysWhyNot(t *testing.T) {
	cases := []struct {
		name  string
		start func() protocol.Report
		alter func(*protocol.Report)
		why   string // a part of what is said; empty when ready
	}{
		{"a replica that follows the primary", replica, func(*protocol.Report) {}, ""},
		{"a primary that is writable", primary, func(*protocol.Report) {}, ""},
		{"a receiver that does not run", replica, func(r *protocol.Report) {
			r.MySQL.Replication.IORunning, r.MySQL.Replication.IOError = false, "connection refused"
		}, "receiver does not run: connection refused"},
		{"an applier that does not run", replica, func(r *protocol.Report) { r.MySQL.Replication.SQLRunning = false }, "applier"},
		{"a replica of a former primary", replica, func(r *protocol.Report) { r.MySQL.Replication.SourceHost = "c-3.ns.svc" }, `"c-3"`},
		{"a replica that refuses clients", replica, func(r *protocol.Report) {
			r.MySQL.Offline, r.Role.Doing = true, "following c-1"
		}, "clients are not let in yet: following c-1"},
		{"a replica that follows nobody", replica, func(r *protocol.Report) { r.MySQL.Replication = nil }, "not replicating"},
		{"a writable server that is not the primary", replica, func(r *protocol.Report) { r.MySQL.ReadOnly, r.MySQL.SuperReadOnly = false, false }, "without being the primary"},
		{"a primary that is not writable", primary, func(r *protocol.Report) {
			r.MySQL.ReadOnly, r.Role.Doing = true, "taking the primary lease"
		}, "taking the primary lease"},
		{"a named primary that has not the role yet", primary, func(r *protocol.Report) {
			r.Role.Name, r.MySQL.ReadOnly = "replica", true
		}, "not writable"},
		{"a server that is starting", replica, func(r *protocol.Report) {
			r.Server.State, r.MySQL = protocol.ServerStarting, nil
		}, "starting"},
		{"a server that does not start", replica, func(r *protocol.Report) {
			r.Server, r.MySQL = protocol.Server{State: protocol.ServerDown, LastError: "unknown variable"}, nil
		}, "unknown variable"},
		{"an instance that is being made", replica, func(r *protocol.Report) {
			r.Server.State, r.MySQL = protocol.ServerProvisioning, nil
			r.Provision = &protocol.Provision{Step: "cloning", LastError: "refused"}
		}, "cloning: refused"},
		{"a server that does not answer", replica, func(r *protocol.Report) { r.MySQL = nil }, "does not answer"},
		{"facts of long ago", replica, func(r *protocol.Report) { r.ReadAt = time.Now().Add(-time.Minute) }, "has not answered"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := c.start()
			c.alter(&r)
			got := server.Ready(r, "c-1", 0, time.Now())
			if (got == "") != (c.why == "") || !strings.Contains(got, c.why) {
				t.Errorf("said %q, want %q", got, c.why)
			}
		})
	}
}

func behind(d time.Duration) func(*protocol.Report) {
	return func(r *protocol.Report) { r.Heartbeat = &protocol.Heartbeat{LagMillis: new(d.Milliseconds())} }
}

func TestABoundOfTheLagHoldsReplicasBack(t *testing.T) {
	const bound = 30 * time.Second
	for _, c := range []struct {
		name  string
		start func() protocol.Report
		alter func(*protocol.Report)
		bound time.Duration
		why   string
	}{
		{"within the bound", replica, behind(bound), bound, ""},
		{"beyond it", replica, behind(8 * time.Hour), bound, "replication lag 8h0m0s exceeds maxReadyLag 30s"},
		{"far behind without a bound", replica, behind(8 * time.Hour), 0, ""},
		{"no reading yet", replica, func(r *protocol.Report) { r.Heartbeat = &protocol.Heartbeat{} }, bound, "is not known"},
		{"no heartbeat", replica, func(*protocol.Report) {}, bound, "is not known"},
		{"no reading without a bound", replica, func(*protocol.Report) {}, 0, ""},
		{"a primary", primary, func(*protocol.Report) {}, bound, ""},
		{"an applier that stopped is told first", replica, func(r *protocol.Report) {
			behind(time.Hour)(r)
			r.MySQL.Replication.SQLRunning = false
		}, bound, "applier"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.start()
			c.alter(&r)
			if got := server.Ready(r, "c-1", c.bound, time.Now()); (got == "") != (c.why == "") || !strings.Contains(got, c.why) {
				t.Errorf("said %q, want %q", got, c.why)
			}
		})
	}
}

// probing is the probes with a present report and a fence.
func probing(p *present, fenced *time.Duration) func(path string) (int, string) {
	probes := &server.Probes{Present: p, Fenced: func() time.Duration { return *fenced }, Primary: func() string { return "c-1" }, MaxLag: func() time.Duration { return 0 }}
	h := probes.Handler()
	return func(path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w.Code, w.Body.String()
	}
}

func TestLivenessDependsOnNothingButAFenceThatLasts(t *testing.T) {
	fenced := -time.Millisecond
	p := &present{}
	ask := probing(p, &fenced)
	for name, alter := range map[string]func(*protocol.Report){
		"a server that is down":          func(r *protocol.Report) { r.Server.State, r.MySQL = protocol.ServerDown, nil },
		"replication that does not work": func(r *protocol.Report) { r.MySQL.Replication.IORunning = false },
		"an intent of long ago":          func(r *protocol.Report) { r.Role.IntentAgeMillis = 3_600_000 },
		"an instance that is being made": func(r *protocol.Report) {
			r.Server.State, r.MySQL = protocol.ServerProvisioning, nil
			r.Provision = &protocol.Provision{Step: protocol.StepCloning, Percent: 3, LastError: "it has stood still"}
		},
		"an empty report": func(r *protocol.Report) { *r = protocol.Report{} },
	} {
		p.report = replica()
		alter(&p.report)
		if code, body := ask("/livez"); code != http.StatusOK {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	for d, want := range map[time.Duration]int{0: 200, 29 * time.Second: 200, 31 * time.Second: 503} {
		fenced = d
		if code, body := ask("/livez"); code != want {
			t.Errorf("fenced for %s: %d %s", d, code, body)
		}
	}
}

func TestTheServerHasStartedOnceItAnswered(t *testing.T) {
	fenced := -time.Millisecond
	p := &present{report: protocol.Report{Server: protocol.Server{State: protocol.ServerStarting}}}
	ask := probing(p, &fenced)
	if code, body := ask("/startupz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "starting") {
		t.Errorf("%d %s", code, body)
	}
	p.report = replica()
	if code, body := ask("/startupz"); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	p.report = protocol.Report{Server: protocol.Server{State: protocol.ServerDown}}
	if code, body := ask("/startupz"); code != http.StatusOK {
		t.Errorf("a server that ended later has not started: %d %s", code, body)
	}
	if code, _ := ask("/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("ready without a server: %d", code)
	}
}

// The kubelet would otherwise restart the container of an instance that is fenced for longer than a start may take.
func TestAFencedInstanceHasStartedIsAliveAndNotReady(t *testing.T) {
	notFenced := -time.Millisecond
	ask := probing(&present{report: protocol.Report{Server: protocol.Server{State: protocol.ServerFenced}}}, &notFenced)
	for path, want := range map[string]int{"/startupz": http.StatusOK, "/livez": http.StatusOK, "/readyz": http.StatusServiceUnavailable} {
		code, body := ask(path)
		if code != want || want != http.StatusOK && body != "the server is stopped: a person fenced the instance\n" {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

func TestTheMakingOfDataIsNoStartThatTakesTooLong(t *testing.T) {
	fenced := -time.Millisecond
	for step, want := range map[string]int{
		protocol.StepWaiting: 503, "ForeignData": 503, protocol.StepFenced: 200, protocol.StepInitialising: 200, protocol.StepCloning: 200, protocol.StepRestarting: 200,
	} {
		p := &present{report: protocol.Report{
			Server: protocol.Server{State: protocol.ServerProvisioning}, Provision: &protocol.Provision{Step: step, LastError: "why"},
		}}
		ask := probing(p, &fenced)
		if code, body := ask("/startupz"); code != want {
			t.Errorf("%s: %d %s", step, code, body)
		}
		if code, body := ask("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, step+": why") {
			t.Errorf("%s: ready: %d %s", step, code, body)
		}
	}
}

func TestMetricsSayWhatTheReportSays(t *testing.T) {
	r := replica()
	set, err := gtid.Parse("aaaaaaaa-0000-0000-0000-000000000001:1-7")
	if err != nil {
		t.Fatal(err)
	}
	r.MySQL.Replication.Received = set
	r.Role.Generation, r.Server.Restarts = 4, 2
	r.Server.ConfigHash, r.Server.WantedConfigHash = "a", "b"
	h := server.Metrics(&present{report: r})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, line := range []string{
		"cnmsql_instance_up 1", "cnmsql_instance_writable 0", `cnmsql_instance_role{role="replica"} 1`, `cnmsql_instance_role{role="primary"} 0`,
		"cnmsql_instance_generation 4", "cnmsql_instance_lease_held 0", "cnmsql_instance_server_restarts_total 2",
		"cnmsql_instance_replica_unapplied_transactions 7", "cnmsql_instance_config_outdated 1", "go_goroutines", "process_resident_memory_bytes",
	} {
		if !strings.Contains(w.Body.String(), "\n"+line) {
			t.Errorf("no line %q", line)
		}
	}
}
