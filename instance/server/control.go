package server

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "cnmsql.co/operator/api/v1alpha1"
	"cnmsql.co/operator/instance/protocol"
)

const (
	writeTimeout   = 5 * time.Second
	maxRequestBody = 64 << 10 // bytes
)

// Reporter says what the instance is.
type Reporter interface {
	// Fresh reads the server's facts for this very question.
	Fresh(ctx context.Context) protocol.Report
	// Subscribe is a stream of reports as JSON lines, beginning with the present one; the function ends it.
	Subscribe() (<-chan []byte, func())
}

// Settings changes what the operator may change in a running server.
type Settings interface {
	SetSemiSync(ctx context.Context, want protocol.SemiSyncSettings) error
}

// Voter vouches for the holder of the primary lease, or does not.
type Voter interface {
	Vouch(q protocol.VouchQuestion) protocol.VouchAnswer
}

// Control is the control API.
type Control struct {
	// Cluster is the name of the Cluster whose instances may read.
	Cluster  string
	Reporter Reporter
	Settings Settings
	Voter    Voter
	// Refused is the error by which Settings says that the request itself is wrong, not the carrying out.
	Refused error
	// Done ends the streams.
	Done <-chan struct{}
}

// Handler serves protocol's paths. The certificate of the client was verified by TLS; who it is, is looked at here.
func (c *Control) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+protocol.PathStatus, c.reader(c.status))
	mux.HandleFunc("PUT "+protocol.PathSemiSync, c.operator(c.semiSync))
	mux.HandleFunc("POST "+protocol.PathVouch, c.vouch)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		problem(w, http.StatusNotFound, "there is no such path, or not with this method")
	})
	return mux
}

// subject is the common name that the client proved.
func subject(r *http.Request) string {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return ""
	}
	return r.TLS.VerifiedChains[0][0].Subject.CommonName
}

func (c *Control) operator(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if subject(r) != api.SubjectControl {
			problem(w, http.StatusForbidden, "only the operator may do this")
			return
		}
		next(w, r)
	}
}

func (c *Control) reader(next http.HandlerFunc) http.HandlerFunc {
	cluster := api.Cluster{ObjectMeta: metav1.ObjectMeta{Name: c.Cluster}}
	return func(w http.ResponseWriter, r *http.Request) {
		name := subject(r)
		if _, instance := cluster.InstanceOrdinal(name); name != api.SubjectControl && !instance {
			problem(w, http.StatusForbidden, "only the operator and the instances of this Cluster may read")
			return
		}
		next(w, r)
	}
}

func (c *Control) status(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("watch") == "true" {
		c.watch(w, r)
		return
	}
	answer(w, http.StatusOK, c.Reporter.Fresh(r.Context()))
}

// watch streams until the client goes, the server ends, or a line cannot be written in time.
func (c *Control) watch(w http.ResponseWriter, r *http.Request) {
	lines, end := c.Reporter.Subscribe()
	defer end()
	w.Header().Set("Content-Type", "application/jsonl")
	out := http.NewResponseController(w)
	for {
		select {
		case <-r.Context().Done():
			return
		case <-c.Done:
			return
		case line := <-lines:
			if out.SetWriteDeadline(time.Now().Add(writeTimeout)) != nil {
				return
			}
			if _, err := w.Write(line); err != nil {
				return
			}
			if out.Flush() != nil {
				return
			}
		}
	}
}

// vouch answers an instance that asks for itself.
func (c *Control) vouch(w http.ResponseWriter, r *http.Request) {
	var q protocol.VouchQuestion
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBody)).Decode(&q); err != nil {
		problem(w, http.StatusBadRequest, "reading the question: "+err.Error())
		return
	}
	cluster := api.Cluster{ObjectMeta: metav1.ObjectMeta{Name: c.Cluster}}
	name := subject(r)
	if _, instance := cluster.InstanceOrdinal(name); !instance || name != q.Instance || !strings.HasPrefix(q.Holder, name+"/") {
		problem(w, http.StatusForbidden, "an instance asks for itself only")
		return
	}
	answer(w, http.StatusOK, c.Voter.Vouch(q))
}

func (c *Control) semiSync(w http.ResponseWriter, r *http.Request) {
	var want protocol.SemiSyncSettings
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequestBody)).Decode(&want); err != nil {
		problem(w, http.StatusBadRequest, "reading the settings: "+err.Error())
		return
	}
	err := c.Settings.SetSemiSync(r.Context(), want)
	switch {
	case err == nil:
		answer(w, http.StatusOK, want)
	case errors.Is(err, c.Refused):
		problem(w, http.StatusConflict, err.Error())
	default:
		problem(w, http.StatusInternalServerError, err.Error())
	}
}

func problem(w http.ResponseWriter, code int, text string) {
	answer(w, code, protocol.Problem{Error: text})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// A client that has gone does not need the rest.
	_ = json.NewEncoder(w).Encode(body)
}
