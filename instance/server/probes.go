package server

import (
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"cnmsql.co/operator/instance/protocol"
	"cnmsql.co/operator/instance/role"
)

// fencedTooLong is when a fenced former holder's container is restarted.
const fencedTooLong = 30 * time.Second

// factsTooOld is when a report's facts say nothing about now.
const factsTooOld = 10 * time.Second

// Present is what the probes and metrics look at: reports without asking the server anew.
type Present interface {
	Report() protocol.Report
}

// Probes answers the kubelet.
type Probes struct {
	Present Present
	// Fenced is for how long the server has been fenced, negative when it is not.
	Fenced func() time.Duration
	// Primary is the instance that a replica should follow; empty when there is none.
	Primary func() string
	// MaxLag is how far behind a replica may be and be ready; 0 for however far.
	MaxLag func() time.Duration

	started atomic.Bool
}

// Handler serves /livez, /startupz and /readyz.
func (p *Probes) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { say(w, p.Alive()) })
	mux.HandleFunc("GET /startupz", func(w http.ResponseWriter, _ *http.Request) { say(w, p.Started()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		say(w, Ready(p.Present.Report(), p.Primary(), p.MaxLag(), time.Now()))
	})
	return mux
}

// Alive says why the container is to be restarted; empty when it is not.
func (p *Probes) Alive() string {
	if d := p.Fenced(); d > fencedTooLong {
		return fmt.Sprintf("the primary lease could not be renewed; the server is fenced for %s", d.Round(time.Second))
	}
	return ""
}

// Started says why the server does not count as started; empty once it has accepted connections, while it is kept
// stopped by a fence, and while its data are being made. The kubelet counts a start in seconds, and a container that it restarts in the middle of
// a clone begins the clone from nothing: how long that may take is bounded by provision, which sees whether it
// goes on.
func (p *Probes) Started() string {
	if p.started.Load() {
		return ""
	}
	r := p.Present.Report()
	if r.MySQL != nil || r.Provision.Busy() || r.Server.State == protocol.ServerFenced {
		p.started.Store(true)
		return ""
	}
	return state(r)
}

// Ready says why an instance is not ready; empty when it is.
func Ready(r protocol.Report, primary string, maxLag time.Duration, now time.Time) string {
	m := r.MySQL
	switch {
	case r.Server.State != protocol.ServerRunning || m == nil:
		return state(r)
	case now.Sub(r.ReadAt) > factsTooOld:
		return "the server has not answered for " + now.Sub(r.ReadAt).Round(time.Second).String()
	case r.Role.Name == role.Primary || r.Instance == primary:
		if !m.Writable() {
			return "the primary is not writable: " + r.Role.Doing
		}
		return admits(r)
	case m.Writable():
		return "writable without being the primary"
	}
	if why := replicaReady(m.Replication, primary); why != "" {
		return why
	}
	if why := tooFarBehind(&r, maxLag); why != "" {
		return why
	}
	return admits(r)
}

// tooFarBehind says that a replica is not to be read from yet. One whose lag is not known may be hours behind.
func tooFarBehind(r *protocol.Report, maxLag time.Duration) string {
	switch lag, known := r.Lag(); {
	case maxLag <= 0:
		return ""
	case !known:
		return fmt.Sprintf("the replication lag is not known: no heartbeat of the primary was read yet, and maxReadyLag is %s", maxLag)
	case lag > maxLag:
		return fmt.Sprintf("replication lag %s exceeds maxReadyLag %s", lag.Round(time.Second), maxLag)
	}
	return ""
}

// admits says why clients cannot connect to a server that is as it should be otherwise.
func admits(r protocol.Report) string {
	if r.MySQL.Offline {
		return "clients are not let in yet: " + r.Role.Doing
	}
	return ""
}

func replicaReady(r *protocol.Replication, primary string) string {
	switch {
	case r == nil:
		return "not replicating"
	case protocol.HostInstance(r.SourceHost) != primary:
		return fmt.Sprintf("replicates from %q, not from the primary %q", protocol.HostInstance(r.SourceHost), primary)
	case !r.SQLRunning:
		return "the applier does not run: " + r.SQLError
	case !r.IORunning:
		return "the receiver does not run: " + r.IOError
	}
	return ""
}

// state says what the server does instead of running.
func state(r protocol.Report) string {
	text := "the server is " + string(r.Server.State)
	if r.Server.State == protocol.ServerFenced {
		return "the server is stopped: a person fenced the instance"
	}
	if r.Server.State == protocol.ServerRunning {
		text = "the server does not answer"
	}
	if p := r.Provision; p != nil {
		text += ": " + p.Step
		if p.LastError != "" {
			text += ": " + p.LastError
		}
	} else if r.Server.LastError != "" {
		text += ": " + r.Server.LastError
	}
	return text
}

func say(w http.ResponseWriter, why string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if why == "" {
		_, _ = io.WriteString(w, "ok\n")
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	_, _ = io.WriteString(w, why+"\n")
}
